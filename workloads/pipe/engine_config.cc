#include "workloads/pipe/engine_config.h"

#include <string>

namespace pipeyard::pipe {
namespace {

template <typename T>
struct Word {
  T value;
  std::string_view text;
};

constexpr Word<PageCache> kPageCaches[] = {{PageCache::kTwoPage, "two-page"},
                                           {PageCache::kOnePage, "one-page"},
                                           {PageCache::kPreallocV1, "prealloc-v1"},
                                           {PageCache::kPrealloc, "prealloc"},
                                           {PageCache::kPool, "pool"}};
constexpr Word<memory::PageSource> kPageSources[] = {{memory::PageSource::kResident, "resident"},
                                                     {memory::PageSource::kOnDemand, "on-demand"}};
constexpr Word<Wakeup> kWakeups[] = {{Wakeup::kWasFull, "was-full"}, {Wakeup::kAlways, "always"}};
constexpr Word<PollWakeup> kPollWakeups[] = {{PollWakeup::kPollUsage, "poll-usage"},
                                             {PollWakeup::kNone, "none"},
                                             {PollWakeup::kEdgeConsumers, "edge-consumers"}};
constexpr Word<bool> kOnOff[] = {{true, "on"}, {false, "off"}};

template <typename T, size_t kSize>
Result<T> Parse(std::string_view name, const Word<T> (&words)[kSize], std::string_view text) {
  std::string meant;
  for (size_t i = 0; i < kSize; ++i) {
    if (words[i].text == text) return words[i].value;
    if (i != 0) meant += i + 1 == kSize ? " or " : ", ";
    meant += words[i].text;
  }
  return InvalidArgument(std::string(name) + ": '" + std::string(text) + "': must be " + meant);
}

template <typename T, size_t kSize>
std::string_view NameOf(const Word<T> (&words)[kSize], T value) {
  for (const Word<T>& word : words) {
    if (word.value == value) return word.text;
  }
  return "unknown";
}

}  // namespace

Result<PageCache> ParsePageCache(std::string_view text) {
  return Parse("engine.page_cache", kPageCaches, text);
}
std::string_view PageCacheName(PageCache page_cache) { return NameOf(kPageCaches, page_cache); }

Result<memory::PageSource> ParsePageSource(std::string_view text) {
  return Parse("engine.page_source", kPageSources, text);
}
std::string_view PageSourceName(memory::PageSource source) { return NameOf(kPageSources, source); }

Result<Wakeup> ParseWakeup(std::string_view text) { return Parse("engine.wakeup", kWakeups, text); }
std::string_view WakeupName(Wakeup wakeup) { return NameOf(kWakeups, wakeup); }

Result<PollWakeup> ParsePollWakeup(std::string_view text) {
  return Parse("engine.poll_wakeup", kPollWakeups, text);
}
std::string_view PollWakeupName(PollWakeup poll_wakeup) {
  return NameOf(kPollWakeups, poll_wakeup);
}

Result<bool> ParseOnOff(std::string_view name, std::string_view text) {
  return Parse(name, kOnOff, text);
}

}  // namespace pipeyard::pipe
