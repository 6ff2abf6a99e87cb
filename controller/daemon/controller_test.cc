// The whole daemon in this process, over real gRPC on loopback.
#include "controller/daemon/controller.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>

#include "base/env.h"
#include "base/executor.h"
#include "base/log.h"
#include "base/mutex.h"
#include "controller/scheduler/testing/builders.h"
#include "pipeyard/v1/control.grpc.pb.h"
#include "proto/grpc/agent_channel.h"
#include "proto/grpc/endpoint.h"
#include "storage/testing/fixtures.h"

namespace pipeyard::daemon {
namespace {

constexpr auto kPatience = std::chrono::seconds(60);

ControllerConfig ConfigIn(const std::string& state_dir) {
  SetLogLevel(LogLevel::kError);
  ControllerConfig config;
  config.state_dir = state_dir;
  config.listen = "127.0.0.1:0";
  config.http = "127.0.0.1:0";
  return config;
}

// An agent that ends each attempt `ok` at once, or holds it and says nothing.
class SimpleAgent final : public session::StreamHandler<v1::ControllerMessage> {
 public:
  SimpleAgent(const std::string& address, bool finishes)
      : finishes_(finishes), dialer_(loop_, address) {
    loop_.Post([this] {
      stream_ = dialer_.Dial();
      stream_->Start(*this);
      v1::AgentMessage message;
      *message.mutable_hello() = scheduler::HelloOf(scheduler::TestHost(1));
      stream_->Send(message);
    });
  }
  ~SimpleAgent() override {
    loop_.Post([this] { stream_.reset(); });
    loop_.Stop();
  }

  void WaitForWelcome() EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (!is_welcome_) changed_.Wait(mutex_);
  }

 private:
  void OnMessage(const v1::ControllerMessage& message) override {
    if (message.has_welcome()) {
      MutexLock lock(mutex_);
      is_welcome_ = true;
      changed_.NotifyAll();
    }
    if (!message.has_assign() || !finishes_) return;
    v1::AgentMessage frame;
    *frame.mutable_frame() = scheduler::FinalFrame(message.assign().store_id(),
                                                   message.assign().attempt_id(), v1::OUTCOME_OK);
    frame.mutable_frame()->mutable_end()->set_boot_id(scheduler::TestUuid(0x2001));
    stream_->Send(frame);
  }
  void OnClosed(const Status&) override {}

  const bool finishes_;
  SerialExecutor loop_{"agent"};
  grpc_edge::AgentDialer dialer_;
  std::unique_ptr<session::AgentStream> stream_;  // confined to loop_
  Mutex mutex_;
  CondVar changed_;
  bool is_welcome_ GUARDED_BY(mutex_) = false;
};

class ControllerTest : public ::testing::Test {
 protected:
  std::unique_ptr<Controller> Start() {
    Result<std::unique_ptr<Controller>> started = Controller::Start(ConfigIn(folder_.path()));
    EXPECT_TRUE(started.ok()) << started.status().ToString();
    if (!started.ok()) return nullptr;
    stub_ = v1::ControlService::NewStub(grpc_edge::MakeChannel((*started)->grpc_address()));
    return std::move(started).value();
  }

  static std::unique_ptr<grpc::ClientContext> Context() {
    auto context = std::make_unique<grpc::ClientContext>();
    context->set_deadline(std::chrono::system_clock::now() + kPatience);
    return context;
  }

  std::string Submit(int repetitions) {
    v1::SubmitSweepRequest request;
    request.set_request_id(scheduler::TestUuid(1));
    request.mutable_sweep()->set_yaml(
        "sweep: contract\nworkload: transfer\ntarget: kernel\nfactors: { writers: [1, 2] }\n"
        "compare: { factor: writers, baseline: 1 }\nrepetitions: { min: " +
        std::to_string(repetitions) + ", max: " + std::to_string(repetitions) + " }\n");
    v1::SubmitSweepResponse response;
    const grpc::Status status = stub_->SubmitSweep(Context().get(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_NE(response.run_id(), "");
    return response.run_id();
  }

  storage::TemporaryFolder folder_;
  std::unique_ptr<v1::ControlService::Stub> stub_;
};

TEST_F(ControllerTest, RunsASweepWatchedToItsEnd) {
  const auto controller = Start();
  ASSERT_NE(controller, nullptr);
  SimpleAgent agent(controller->grpc_address(), true);
  agent.WaitForWelcome();
  v1::GetRunRequest request;
  request.set_run(Submit(6));

  const auto context = Context();
  const auto reader = stub_->WatchRun(context.get(), request);
  v1::RunProgress progress;
  int num_told = 0;
  while (reader->Read(&progress)) ++num_told;
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_GE(num_told, 1);
  EXPECT_EQ(progress.summary().state(), "finished");
  EXPECT_EQ(progress.summary().trials_done(), 12u);

  v1::Run run;
  ASSERT_TRUE(stub_->GetRun(Context().get(), request, &run).ok());
  EXPECT_EQ(run.cells_size(), 2);
  v1::DiffRequest diff;
  diff.set_a("latest");
  v1::DiffResponse rows;
  ASSERT_TRUE(stub_->Diff(Context().get(), diff, &rows).ok());
  EXPECT_GT(rows.rows_size(), 0);
  EXPECT_TRUE(controller->Stop().ok());
}

TEST_F(ControllerTest, AWatchThatTheClientCancelsEndsAndTheRunGoesOn) {
  const auto controller = Start();
  ASSERT_NE(controller, nullptr);
  SimpleAgent agent(controller->grpc_address(), false);
  agent.WaitForWelcome();
  v1::GetRunRequest request;
  request.set_run(Submit(6));

  const auto context = Context();
  const auto reader = stub_->WatchRun(context.get(), request);
  v1::RunProgress progress;
  ASSERT_TRUE(reader->Read(&progress));
  context->TryCancel();
  while (reader->Read(&progress)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);

  v1::CancelRunRequest cancel;
  cancel.set_run(request.run());
  ASSERT_TRUE(stub_->CancelRun(Context().get(), cancel, &progress).ok());
  EXPECT_EQ(progress.summary().state(), "canceled");
}

TEST_F(ControllerTest, StoppingEndsWatchesAndAgents) {
  const auto controller = Start();
  ASSERT_NE(controller, nullptr);
  SimpleAgent agent(controller->grpc_address(), false);
  agent.WaitForWelcome();
  v1::GetRunRequest request;
  request.set_run(Submit(6));
  const auto context = Context();
  const auto reader = stub_->WatchRun(context.get(), request);
  v1::RunProgress progress;
  ASSERT_TRUE(reader->Read(&progress));

  EXPECT_TRUE(controller->Stop().ok());

  while (reader->Read(&progress)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(ControllerTest, MapsErrorsToTheCodesOfTheContract) {
  const auto controller = Start();
  ASSERT_NE(controller, nullptr);
  v1::GetRunRequest run;
  run.set_run("00000000-0000-7000-8000-000000000000");
  v1::Run no_run;
  v1::GetHostRequest host;
  host.set_host("nobody");
  v1::Host no_host;
  v1::SubmitSweepRequest submit;
  v1::SubmitSweepResponse submitted;
  v1::RunProgress progress;

  EXPECT_EQ(stub_->GetRun(Context().get(), run, &no_run).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(stub_->GetHost(Context().get(), host, &no_host).error_code(),
            grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(stub_->SubmitSweep(Context().get(), submit, &submitted).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  const auto context = Context();
  const auto reader = stub_->WatchRun(context.get(), run);
  EXPECT_FALSE(reader->Read(&progress));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(ControllerTest, KeepsItsStoreAndCountsItsStarts) {
  v1::Controller first, second;
  {
    const auto controller = Start();
    ASSERT_NE(controller, nullptr);
    ASSERT_TRUE(stub_->GetController(Context().get(), {}, &first).ok());
    EXPECT_TRUE(PosixEnv().Exists(folder_.path() + "/controller.addr"));
  }
  EXPECT_FALSE(PosixEnv().Exists(folder_.path() + "/controller.addr"));
  const auto controller = Start();
  ASSERT_NE(controller, nullptr);
  ASSERT_TRUE(stub_->GetController(Context().get(), {}, &second).ok());

  EXPECT_EQ(second.store_id(), first.store_id());
  EXPECT_EQ(second.epoch(), first.epoch() + 1);
  EXPECT_EQ(second.state_dir(), folder_.path());
}

TEST_F(ControllerTest, ASecondOneInTheSameFolderIsRefusedAndHarmsNothing) {
  const auto controller = Start();
  ASSERT_NE(controller, nullptr);

  const auto second = Controller::Start(ConfigIn(folder_.path()));

  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.status().message().find(folder_.path()), std::string::npos);
  EXPECT_TRUE(PosixEnv().Exists(folder_.path() + "/controller.addr"));
}

TEST_F(ControllerTest, AnAddressThatIsNotLoopbackNeedsInsecure) {
  ControllerConfig config = ConfigIn(folder_.path());
  config.http = "0.0.0.0:0";
  const auto http = Controller::Start(config);
  ASSERT_FALSE(http.ok());
  EXPECT_NE(http.status().message().find("--insecure"), std::string::npos);
  EXPECT_FALSE(PosixEnv().Exists(folder_.StorePath())) << "nothing is made";

  config = ConfigIn(folder_.path());
  config.listen = "0.0.0.0:0";
  EXPECT_FALSE(Controller::Start(config).ok());
}

}  // namespace
}  // namespace pipeyard::daemon
