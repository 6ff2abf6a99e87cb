#include "controller/core/testing/core_fixture.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/log.h"

namespace pipeyard::core {

std::string SweepYaml(int repetitions) {
  return fmt::format(
      "sweep: contract\nworkload: transfer\ntarget: kernel\n"
      "parameters: {{ duration: 200ms, warmup: 0 }}\nfactors: {{ writers: [1, 2] }}\n"
      "compare: {{ factor: writers, baseline: 1 }}\nrepetitions: {{ min: {0}, max: {0} }}\n"
      "order: {{ kind: blocked, seed: 7 }}\n",
      repetitions);
}

v1::SubmitSweepRequest SubmitRequest(uint32_t n, int repetitions) {
  v1::SubmitSweepRequest request;
  request.set_request_id(scheduler::TestUuid(0x6000 + n));
  request.mutable_sweep()->set_file_name("contract.yaml");
  request.mutable_sweep()->set_yaml(SweepYaml(repetitions));
  return request;
}

RawAgent::RawAgent(session::Dialer& dialer, const v1::Hello& hello) : stream_(dialer.Dial()) {
  stream_->Start(*this);
  v1::AgentMessage message;
  *message.mutable_hello() = hello;
  stream_->Send(message);
}

void RawAgent::Accept(const v1::Assign& assign) {
  v1::AgentMessage message;
  message.mutable_accepted()->set_attempt_id(assign.attempt_id());
  message.mutable_accepted()->set_epoch(assign.epoch());
  stream_->Send(message);
}

void RawAgent::Finish(const v1::Assign& assign, v1::Outcome outcome) {
  v1::Frame frame = scheduler::FinalFrame(assign.store_id(), assign.attempt_id(), outcome,
                                          outcome == v1::OUTCOME_OK ? "" : "test");
  frame.mutable_end()->set_boot_id(scheduler::TestUuid(0x2001));
  Send(frame);
}

void RawAgent::Send(const v1::Frame& frame) {
  v1::AgentMessage message;
  *message.mutable_frame() = frame;
  stream_->Send(message);
}

void RawAgent::Beat() {
  v1::AgentMessage message;
  message.mutable_heartbeat();
  stream_->Send(message);
}

const v1::Assign* RawAgent::LastAssign() const {
  for (auto it = received.rbegin(); it != received.rend(); ++it) {
    if (it->has_assign()) return &it->assign();
  }
  return nullptr;
}

const v1::Ack* RawAgent::LastAck() const {
  for (auto it = received.rbegin(); it != received.rend(); ++it) {
    if (it->has_ack()) return &it->ack();
  }
  return nullptr;
}

size_t RawAgent::NumAssigns() const {
  return static_cast<size_t>(
      std::ranges::count_if(received, [](const auto& message) { return message.has_assign(); }));
}

CoreFixture::CoreFixture() {
  SetLogLevel(LogLevel::kError);
  auto reader = std::make_unique<FakeExecutor>(clock_);
  reader_ = reader.get();
  std::vector<std::unique_ptr<Executor>> executors;
  executors.push_back(std::move(reader));
  readers_ = std::make_unique<Readers>(std::move(executors));
  committer_ =
      std::make_unique<ingest::Committer>(store_, loop_, writer_, ingest::CommitterOptions());
  CoreOptions options;
  options.version = "0.1.0";
  options.state_dir = "/nowhere";
  core_ = std::make_unique<Core>(loop_, clock_, store_, *committer_, *readers_, ids_, options);
  EXPECT_TRUE(core_->Start().ok());
  network_.Listen(&core_->acceptor());
  Run();
}

CoreFixture::~CoreFixture() { network_.Listen(nullptr); }

void CoreFixture::Run() {
  while (loop_.RunUntilIdle() + writer_.RunUntilIdle() + reader_->RunUntilIdle() > 0) {
  }
}

void CoreFixture::RunWithoutCommits() {
  while (loop_.RunUntilIdle() + reader_->RunUntilIdle() > 0) {
  }
}

void CoreFixture::Advance(Nanos by) {
  // In the loop's steps: the executors share the clock.
  for (Nanos done(0); done < by; done += Milliseconds(50)) {
    clock_.Advance(Milliseconds(50));
    Run();
  }
}

std::unique_ptr<RawAgent> CoreFixture::Attach(uint32_t n) {
  auto agent = std::make_unique<RawAgent>(network_, scheduler::HelloOf(scheduler::TestHost(n)));
  Run();
  const bool is_welcome = !agent->received.empty() && agent->received.front().has_welcome();
  EXPECT_TRUE(is_welcome);
  return agent;
}

std::string CoreFixture::Submit(uint32_t n, int repetitions) {
  Answer<v1::SubmitSweepResponse> answer;
  core_->SubmitSweep(SubmitRequest(n, repetitions), "cli:test", answer.reply());
  Run();
  EXPECT_TRUE(answer.ok());
  if (!answer.ok()) return "";
  EXPECT_NE((*answer.result)->run_id(), "");
  return (*answer.result)->run_id();
}

void CoreFixture::WorkOff(RawAgent& agent) {
  size_t num_done = 0;
  while (agent.NumAssigns() > num_done) {
    const v1::Assign assign = *agent.LastAssign();
    num_done = agent.NumAssigns();
    agent.Accept(assign);
    agent.Finish(assign, v1::OUTCOME_OK);
    Run();
  }
}

}  // namespace pipeyard::core
