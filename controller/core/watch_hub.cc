#include "controller/core/watch_hub.h"

#include <utility>

namespace pipeyard::core {

WatchHub::WatchHub(Executor& executor, const Clock& clock, Nanos min_interval,
                   RequestSnapshot request)
    : executor_(executor),
      clock_(clock),
      min_interval_(min_interval),
      request_(std::move(request)) {}

WatchId WatchHub::Add(const std::string& run_id, Watcher watcher) {
  const WatchId id = next_id_++;
  WatchedRun& run = runs_[run_id];
  run.watchers[id] = std::move(watcher);
  run_of_[id] = run_id;
  Request(run_id, run);
  return id;
}

void WatchHub::Remove(WatchId id) {
  const auto it = run_of_.find(id);
  if (it == run_of_.end()) return;
  const auto run = runs_.find(it->second);
  run->second.watchers.erase(id);
  if (run->second.watchers.empty()) runs_.erase(run);
  run_of_.erase(it);
}

void WatchHub::OnChanged(const std::string& run_id) {
  const auto it = runs_.find(run_id);
  if (it == runs_.end() || it->second.is_due) return;
  WatchedRun& run = it->second;
  const Nanos since = clock_.Now() - run.last_request;
  if (since >= min_interval_) return Request(run_id, run);
  run.is_due = true;
  executor_.PostAfter(min_interval_ - since, [this, run_id] {
    const auto due = runs_.find(run_id);
    if (due == runs_.end()) return;
    due->second.is_due = false;
    Request(run_id, due->second);
  });
}

void WatchHub::Request(const std::string& run_id, WatchedRun& run) {
  run.last_request = clock_.Now();
  request_(run_id);
}

void WatchHub::Deliver(const v1::RunProgress& progress) {
  const auto it = runs_.find(progress.summary().run_id());
  if (it == runs_.end()) return;
  // A copy: a watcher may remove itself.
  const auto watchers = it->second.watchers;
  for (const auto& [id, watcher] : watchers) {
    if (run_of_.contains(id)) watcher.on_progress(progress);
  }
}

void WatchHub::OnEnded(const v1::RunProgress& progress) {
  const auto it = runs_.find(progress.summary().run_id());
  if (it == runs_.end()) return;
  const auto watchers = std::move(it->second.watchers);
  runs_.erase(it);
  for (const auto& [id, watcher] : watchers) run_of_.erase(id);
  for (const auto& [id, watcher] : watchers) {
    watcher.on_progress(progress);
    watcher.on_end(Status::Ok());
  }
}

void WatchHub::EndAll(const Status& why) {
  const auto runs = std::exchange(runs_, {});
  run_of_.clear();
  for (const auto& [run_id, run] : runs) {
    for (const auto& [id, watcher] : run.watchers) watcher.on_end(why);
  }
}

}  // namespace pipeyard::core
