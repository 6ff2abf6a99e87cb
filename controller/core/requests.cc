// What users ask: reads on the readers, decisions on the loop, answers after the commit.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "controller/analysis/diff.h"
#include "controller/analysis/operand.h"
#include "controller/core/answers.h"
#include "controller/core/attempt_log.h"
#include "controller/core/core.h"
#include "controller/core/plan.h"
#include "controller/spec/labels.h"
#include "proto/session/messages.h"

namespace pipeyard::core {
namespace {

constexpr uint32_t kDefaultPage = 50;
constexpr uint32_t kLargestPage = 1'000;

struct ReadSweepFile {
  spec::Sweep sweep;
  std::vector<v1::SpecProblem> problems;
  bool is_ok = false;
};

ReadSweepFile ReadFile(const v1::SweepText& text) {
  ReadSweepFile file;
  spec::ReadResult read = spec::ReadSweep(text.yaml(), {text.sets().begin(), text.sets().end()});
  for (const spec::Problem& problem : read.problems) file.problems.push_back(ToProblem(problem));
  file.is_ok = read.ok();
  file.sweep = std::move(read.sweep);
  return file;
}

Status CheckSubmit(const v1::SubmitSweepRequest& request) {
  if (!IsUuid(request.request_id())) return InvalidArgument("request_id is no UUID");
  PIPEYARD_RETURN_IF_ERROR(spec::CheckNote(request.note()));
  if (request.labels().size() > spec::kMaxLabels) {
    return InvalidArgument(fmt::format("more than {} labels", spec::kMaxLabels));
  }
  for (const auto& [key, value] : request.labels()) {
    PIPEYARD_RETURN_IF_ERROR(spec::CheckLabel(key, value));
  }
  return Status::Ok();
}

struct LoadedRun {
  storage::RunRecord run;
  std::vector<storage::AttemptData> attempts;
};

Result<LoadedRun> Load(storage::Store& store, const std::string& reference) {
  PIPEYARD_ASSIGN_OR_RETURN(const std::string run_id, store.ResolveRun(reference));
  PIPEYARD_ASSIGN_OR_RETURN(storage::RunRecord run, store.LoadRun(run_id));
  PIPEYARD_ASSIGN_OR_RETURN(std::vector<storage::AttemptData> attempts,
                            store.LoadAttemptData(run_id));
  return LoadedRun{std::move(run), std::move(attempts)};
}

Result<v1::DiffResponse> ReadDiff(storage::Store& store, const v1::DiffRequest& request) {
  PIPEYARD_ASSIGN_OR_RETURN(const analysis::DiffOperand a, analysis::ParseDiffOperand(request.a()));
  PIPEYARD_ASSIGN_OR_RETURN(const LoadedRun loaded_a, Load(store, a.run));
  const analysis::DiffOptions options{.is_forced = request.force()};
  if (request.b().empty()) return analysis::DiffRun(loaded_a.run, loaded_a.attempts, a, options);
  PIPEYARD_ASSIGN_OR_RETURN(const analysis::DiffOperand b, analysis::ParseDiffOperand(request.b()));
  PIPEYARD_ASSIGN_OR_RETURN(const LoadedRun loaded_b, Load(store, b.run));
  return analysis::DiffRuns(loaded_a.run, loaded_a.attempts, loaded_b.run, loaded_b.attempts, a, b,
                            options);
}

Result<v1::AttemptLog> ReadLog(storage::Store& store, const v1::GetLogRequest& request) {
  PIPEYARD_ASSIGN_OR_RETURN(const LoadedRun loaded, Load(store, request.run()));
  PIPEYARD_ASSIGN_OR_RETURN(v1::AttemptLog log,
                            FindAttempt(ToRun(loaded.run, loaded.attempts), request));
  PIPEYARD_ASSIGN_OR_RETURN(storage::AttemptDetails details,
                            store.LoadAttemptDetails(log.attempt().attempt_id()));
  log.mutable_outputs()->Assign(details.outputs.begin(), details.outputs.end());
  log.mutable_resolved()->Assign(details.resolved.begin(), details.resolved.end());
  return log;
}

Result<v1::ListRunsResponse> ReadPage(storage::Store& store, const v1::ListRunsRequest& request) {
  const uint32_t wanted = request.page_size() == 0 ? kDefaultPage : request.page_size();
  const uint32_t size = std::min(wanted, kLargestPage);
  if (!request.page_token().empty() && !IsUuid(request.page_token())) {
    return InvalidArgument("page_token is not one of this service");
  }
  // One more tells whether there is a next page.
  PIPEYARD_ASSIGN_OR_RETURN(const std::vector<storage::RunSummaryRecord> runs,
                            store.ListRuns(size + 1, request.page_token()));
  v1::ListRunsResponse response;
  for (size_t i = 0; i < runs.size() && i < size; ++i) *response.add_runs() = ToSummary(runs[i]);
  if (runs.size() > size) response.set_next_page_token(runs[size - 1].run_id);
  return response;
}

}  // namespace

Status Core::CheckWritable() const {
  if (is_stopping_) return Unavailable("the controller is stopping");
  if (has_fault_) return Unavailable(fault().message());
  const ingest::CommitterState state = committer_.state();
  if (!state.is_healthy) {
    return Unavailable("the store cannot be written now: " + state.failure.message());
  }
  if (committer_.fullness() >= 1) return Unavailable("the store is behind; try again");
  return Status::Ok();
}

std::vector<scheduler::HostView> Core::HostViews() const {
  std::vector<scheduler::HostView> views;
  const int64_t utc = clock_.UtcNow().count();
  for (const auto& [host_id, host] : hosts_) {
    const bool is_connected = scheduler_->IsConnected(host_id);
    // The wall clock may step back.
    const Nanos away(is_connected ? 0 : std::max<int64_t>(0, utc - host.last_seen_utc));
    views.push_back({host, is_connected, away});
  }
  return views;
}

v1::Controller Core::GetController() const {
  v1::Controller controller;
  controller.set_protocol_version(session::kProtocolVersion);
  controller.set_version(options_.version);
  controller.set_store_id(identity_.store_id);
  controller.set_epoch(identity_.epoch);
  controller.set_state_dir(options_.state_dir);
  return controller;
}

// Reader: the file. Loop: the hosts. Reader: the run. Loop: stored, unless the request made one.
void Core::SubmitSweep(v1::SubmitSweepRequest request, std::string actor,
                       Reply<v1::SubmitSweepResponse> reply) {
  if (const Status checked = CheckSubmit(request); !checked.ok()) return reply(checked);
  readers_.Post(
      [this, request = std::move(request), actor = std::move(actor), reply = std::move(reply)] {
        v1::SubmitSweepResponse response;
        const Result<std::string> earlier = store_.FindRunByRequest(request.request_id());
        if (!earlier.ok() && earlier.status().code() != StatusCode::kNotFound) {
          return reply(earlier.status());
        }
        ReadSweepFile file = ReadFile(request.sweep());
        response.mutable_problems()->Assign(file.problems.begin(), file.problems.end());
        if (earlier.ok()) {
          response.set_run_id(*earlier);
          return reply(std::move(response));
        }
        if (!file.is_ok) return reply(std::move(response));

        scheduler::RunRequest run;
        run.request_id = request.request_id();
        run.file_name = request.sweep().file_name();
        run.sweep_yaml = request.sweep().yaml();
        run.sets.assign(request.sweep().sets().begin(), request.sweep().sets().end());
        run.note = request.note();
        run.labels.insert(request.labels().begin(), request.labels().end());
        OnLoop([this, run = std::move(run), sweep = std::move(file.sweep), actor, response,
                reply]() mutable {
          loop_.role.AssertHeld();
          run.run_id = ids_.Next();
          // The last 48 bits of a UUIDv7 are random; they stay exact in JSON's numbers.
          run.drawn_seed = std::stoull(ids_.Next().substr(24), nullptr, 16);
          run.created_utc = clock_.UtcNow().count();
          readers_.Post([this, run = std::move(run), sweep = std::move(sweep), hosts = HostViews(),
                         actor, response, reply] {
            Result<scheduler::BuiltRun> built = scheduler::BuildRun(sweep, hosts, run);
            if (!built.ok()) return reply(built.status());
            OnLoop([this, built = std::move(*built), actor, response, reply]() mutable {
              loop_.role.AssertHeld();
              StoreRun(std::move(built), actor, std::move(response), reply);
            });
          });
        });
      });
}

void Core::StoreRun(scheduler::BuiltRun built, std::string actor, v1::SubmitSweepResponse response,
                    Reply<v1::SubmitSweepResponse> reply) {
  if (const Status writable = CheckWritable(); !writable.ok()) return reply(writable);
  const auto answer = [response, reply](const std::string& run_id, const Status& status) {
    if (!status.ok()) {
      return reply(Unavailable("the run was not stored: " + status.message()));
    }
    v1::SubmitSweepResponse stored = response;
    stored.set_run_id(run_id);
    reply(std::move(stored));
  };
  if (const auto earlier = scheduler_->FindRequest(built.run.request_id)) {
    return AfterCommits(
        [answer, run_id = *earlier](const Status& status) { answer(run_id, status); });
  }
  const std::string run_id = built.run.run_id;
  Decide(scheduler::RunSubmitted{std::move(built.run), std::move(actor)},
         [answer, run_id](const Status& status) { answer(run_id, status); });
}

void Core::PlanSweep(v1::PlanSweepRequest request, Reply<v1::Plan> reply) {
  readers_.Post([this, request = std::move(request), reply = std::move(reply)] {
    ReadSweepFile file = ReadFile(request.sweep());
    if (!file.is_ok) {
      v1::Plan plan;
      plan.mutable_problems()->Assign(file.problems.begin(), file.problems.end());
      return reply(std::move(plan));
    }
    OnLoop([this, file = std::move(file), reply] {
      loop_.role.AssertHeld();
      readers_.Post([file, hosts = HostViews(), reply] {
        v1::Plan plan = PlanOf(file.sweep, hosts);
        plan.mutable_problems()->Assign(file.problems.begin(), file.problems.end());
        reply(std::move(plan));
      });
    });
  });
}

void Core::ListRuns(v1::ListRunsRequest request, Reply<v1::ListRunsResponse> reply) {
  readers_.Post([this, request = std::move(request), reply = std::move(reply)] {
    reply(ReadPage(store_, request));
  });
}

void Core::GetRun(v1::GetRunRequest request, Reply<v1::Run> reply) {
  readers_.Post([this, request = std::move(request), reply = std::move(reply)] {
    const Result<LoadedRun> loaded = Load(store_, request.run());
    if (!loaded.ok()) return reply(loaded.status());
    reply(ToRun(loaded->run, loaded->attempts));
  });
}

void Core::GetLog(v1::GetLogRequest request, Reply<v1::AttemptLog> reply) {
  readers_.Post([this, request = std::move(request), reply = std::move(reply)] {
    reply(ReadLog(store_, request));
  });
}

void Core::Diff(v1::DiffRequest request, Reply<v1::DiffResponse> reply) {
  readers_.Post([this, request = std::move(request), reply = std::move(reply)] {
    reply(ReadDiff(store_, request));
  });
}

void Core::CancelRun(v1::CancelRunRequest request, std::string actor,
                     Reply<v1::RunProgress> reply) {
  readers_.Post(
      [this, request = std::move(request), actor = std::move(actor), reply = std::move(reply)] {
        const Result<std::string> run_id = store_.ResolveRun(request.run());
        if (!run_id.ok()) return reply(run_id.status());
        OnLoop([this, run_id = *run_id, actor, reply] {
          loop_.role.AssertHeld();
          const auto answer = [this, run_id, reply] {
            loop_.role.AssertHeld();
            AnswerWithEndedRun(run_id, [run_id, reply](Result<v1::RunProgress> progress) {
              if (!progress.ok() || progress->summary().state() == "canceled") {
                return reply(std::move(progress));
              }
              reply(FailedPrecondition(fmt::format("run {} has ended already: {}", run_id,
                                                   progress->summary().state())));
            });
          };
          if (!scheduler_->IsActive(run_id)) return answer();
          if (const Status writable = CheckWritable(); !writable.ok()) return reply(writable);
          Decide(scheduler::CancelRequested{run_id, actor}, [answer, reply](const Status& status) {
            if (!status.ok()) return reply(Unavailable("not canceled: " + status.message()));
            answer();
          });
        });
      });
}

// Once what was decided is durable, from the store.
void Core::AnswerWithEndedRun(const std::string& run_id, Reply<v1::RunProgress> reply) {
  AfterCommits([this, run_id, reply = std::move(reply)](const Status& status) {
    if (!status.ok()) return reply(Unavailable("the controller is stopping"));
    readers_.Post([this, run_id, reply] {
      const Result<storage::RunRecord> run = store_.LoadRun(run_id);
      if (!run.ok()) return reply(run.status());
      reply(ToProgress(*run));
    });
  });
}

void Core::ListHosts(Reply<v1::ListHostsResponse> reply) {
  OnLoop([this, reply = std::move(reply)] {
    loop_.role.AssertHeld();
    v1::ListHostsResponse response;
    for (const auto& [host_id, host] : hosts_) {
      *response.add_hosts() =
          ToHost(host, scheduler_->IsConnected(host_id), scheduler_->RunningOn(host_id));
    }
    std::sort(response.mutable_hosts()->begin(), response.mutable_hosts()->end(),
              [](const auto& a, const auto& b) { return a.name() < b.name(); });
    reply(std::move(response));
  });
}

void Core::GetHost(v1::GetHostRequest request, Reply<v1::Host> reply) {
  OnLoop([this, request = std::move(request), reply = std::move(reply)] {
    loop_.role.AssertHeld();
    const std::string& wanted = request.host();
    if (wanted.empty()) return reply(InvalidArgument("which host?"));
    const storage::HostRecord* found = nullptr;
    int num_prefixes = 0;
    for (const auto& [host_id, host] : hosts_) {
      if (host.name == wanted || host_id == wanted) {
        found = &host;
        num_prefixes = 1;
        break;
      }
      if (!host_id.starts_with(wanted)) continue;
      found = &host;
      ++num_prefixes;
    }
    if (found == nullptr) return reply(NotFound("no host " + wanted));
    if (num_prefixes > 1) {
      return reply(InvalidArgument(fmt::format("{} hosts begin with {}", num_prefixes, wanted)));
    }
    reply(ToHost(*found, scheduler_->IsConnected(found->host_id),
                 scheduler_->RunningOn(found->host_id)));
  });
}

void Core::WatchRun(v1::GetRunRequest request, WatchHub::Watcher watcher,
                    std::function<void(WatchId)> started) {
  readers_.Post([this, request = std::move(request), watcher = std::move(watcher),
                 started = std::move(started)] {
    const Result<std::string> run_id = store_.ResolveRun(request.run());
    OnLoop([this, run_id, watcher, started] {
      loop_.role.AssertHeld();
      if (!run_id.ok()) return watcher.on_end(run_id.status());
      if (is_stopping_ || has_fault_) {
        return watcher.on_end(Unavailable("the controller is stopping"));
      }
      if (scheduler_->IsActive(*run_id)) return started(watches_->Add(*run_id, watcher));
      AnswerWithEndedRun(*run_id, [this, watcher](Result<v1::RunProgress> progress) {
        OnLoop([watcher, progress = std::move(progress)] {
          if (!progress.ok()) return watcher.on_end(progress.status());
          watcher.on_progress(*progress);
          watcher.on_end(Status::Ok());
        });
      });
    });
  });
}

void Core::StopWatching(WatchId id) {
  OnLoop([this, id] {
    loop_.role.AssertHeld();
    watches_->Remove(id);
  });
}

void Core::SnapshotForWatch(const std::string& run_id) {
  std::optional<v1::RunProgress> progress = scheduler_->Progress(run_id);
  // It ended; its last progress comes with that commit.
  if (!progress) return;
  AfterCommits([this, progress = std::move(*progress)](const Status& status) {
    loop_.role.AssertHeld();
    if (status.ok()) watches_->Deliver(progress);
  });
}

}  // namespace pipeyard::core
