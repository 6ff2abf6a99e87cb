#include "workloads/pipe/engine_config.h"

#include <string>

namespace pipeyard::pipe {

Result<PageCache> ParsePageCache(std::string_view text) {
  if (text == "two-page") return PageCache::kTwoPage;
  if (text == "prealloc") return PageCache::kPrealloc;
  if (text == "one-page" || text == "prealloc-v1" || text == "pool") {
    return Unimplemented("engine.page_cache: " + std::string(text) + ": not supported yet");
  }
  return InvalidArgument("engine.page_cache: '" + std::string(text) +
                         "': must be two-page, one-page, prealloc-v1, prealloc or pool");
}

std::string_view PageCacheName(PageCache page_cache) {
  switch (page_cache) {
    case PageCache::kTwoPage:
      return "two-page";
    case PageCache::kPrealloc:
      return "prealloc";
  }
  return "unknown";
}

}  // namespace pipeyard::pipe
