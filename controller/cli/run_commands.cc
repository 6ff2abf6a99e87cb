#include <fmt/format.h>

#include <charconv>

#include "controller/cli/client.h"
#include "controller/cli/commands.h"
#include "controller/cli/connect.h"
#include "controller/cli/exit_code.h"
#include "controller/cli/submit.h"
#include "controller/report/json.h"
#include "controller/report/run_text.h"

namespace pipeyard::cli {

int RunList(const Console& console, const options::Parsed& parsed) {
  const std::string& text = parsed.Get("limit");
  uint32_t limit = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), limit);
  if (error != std::errc() || end != text.data() + text.size() || limit == 0) {
    console.Say(fmt::format("--limit takes a whole number from 1, not '{}'", text));
    return kUsage;
  }
  return WithController(console, [&](ControlClient& client) {
    v1::ListRunsResponse all;
    while (static_cast<uint32_t>(all.runs_size()) < limit) {
      v1::ListRunsRequest request;
      request.set_page_size(
          std::min<uint32_t>(limit - static_cast<uint32_t>(all.runs_size()), 1'000));
      request.set_page_token(all.next_page_token());
      const Result<v1::ListRunsResponse> page = client.ListRuns(request);
      if (!page.ok()) return console.Fail(page.status());
      all.mutable_runs()->MergeFrom(page->runs());
      all.set_next_page_token(page->next_page_token());
      if (page->next_page_token().empty()) break;
    }
    console.Out(console.format == Format::kJson ? report::RunListJson(all)
                                                : report::RunListText(all, console.is_colored));
    return static_cast<int>(kDone);
  });
}

int RunShow(const Console& console, const options::Parsed& parsed) {
  return WithController(console, [&](ControlClient& client) {
    const Result<v1::Run> run = client.GetRun(parsed.Get("RUN"));
    if (!run.ok()) return console.Fail(run.status());
    console.Out(console.format == Format::kJson ? report::RunJson(*run)
                                                : report::RunText(*run, console.is_colored));
    return static_cast<int>(kDone);
  });
}

int RunWatch(const Console& console, const options::Parsed& parsed) {
  return WithController(console, [&](ControlClient& client) {
    const Result<v1::Run> run = client.GetRun(parsed.Get("RUN"));
    if (!run.ok()) return console.Fail(run.status());
    return WatchToTheEnd(console, client, run->summary().run_id());
  });
}

int RunCancel(const Console& console, const options::Parsed& parsed) {
  return WithController(console, [&](ControlClient& client) {
    const Result<v1::RunProgress> progress = client.CancelRun(parsed.Get("RUN"));
    if (!progress.ok()) return console.Fail(progress.status());
    const v1::RunSummary& run = progress->summary();
    if (console.format == Format::kJson) {
      console.Out(report::CancelJson(*progress));
    } else {
      console.Out(fmt::format("run {} is {}; {} of {} trials are kept\n", run.run_id(), run.state(),
                              run.trials_done(), run.trials()));
    }
    return static_cast<int>(kDone);
  });
}

}  // namespace pipeyard::cli
