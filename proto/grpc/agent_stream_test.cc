// The session over real gRPC on loopback: what the in-memory tests cannot show.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proto/grpc/agent_stream_fixture.h"
#include "proto/session/messages.h"

namespace pipeyard::grpc_edge {
namespace {

TEST(AgentStream, CarriesFramesUntilEachIsAcknowledged) {
  TestController controller(NewId(), 1, "127.0.0.1:0");
  TestAgent agent(controller.address(), 200, 100'000);
  ASSERT_TRUE(agent.log().WaitFor("attached"));

  controller.Assign(agent.id(), NewId());

  ASSERT_TRUE(agent.log().WaitFor("all acknowledged"));
  EXPECT_EQ(controller.log().Count("accepted"), 1);
  controller.Stop();
  EXPECT_EQ(controller.received().size(), 200u);
  for (const auto& [sequence, times] : controller.received()) EXPECT_EQ(times, 1) << sequence;
}

TEST(AgentStream, CarriesTheLargestFrame) {
  TestController controller(NewId(), 1, "127.0.0.1:0");
  TestAgent agent(controller.address(), 8, session::kMaxMessageBytes - 400);
  ASSERT_TRUE(agent.log().WaitFor("attached"));

  controller.Assign(agent.id(), NewId());

  EXPECT_TRUE(agent.log().WaitFor("all acknowledged"));
}

TEST(AgentStream, AnAgentFindsTheControllerAgainAndResendsWhatWasNotAcknowledged) {
  const std::string store_id = NewId();
  std::optional<TestController> controller(std::in_place, store_id, 1, "127.0.0.1:0");
  const std::string address = controller->address();
  TestAgent agent(address, 10, 1000);
  ASSERT_TRUE(agent.log().WaitFor("attached"));
  controller->AckNothing();
  controller->Assign(agent.id(), NewId());
  ASSERT_TRUE(controller->log().WaitFor("frame", 4));

  controller->Stop();
  ASSERT_TRUE(agent.log().WaitFor("detached"));
  EXPECT_EQ(controller->received().size(), 4u);
  controller.emplace(store_id, 2, address);

  EXPECT_TRUE(agent.log().WaitFor("all acknowledged"));
  EXPECT_EQ(agent.log().Count("attached"), 2);
}

TEST(AgentStream, ANewStreamOfTheSameAgentReplacesTheOldOne) {
  TestController controller(NewId(), 1, "127.0.0.1:0");
  TestAgent agent(controller.address(), 1, 10);
  ASSERT_TRUE(agent.log().WaitFor("attached"));

  agent.StartSecondSession();

  EXPECT_TRUE(agent.log().WaitFor("attached", 2));
  EXPECT_TRUE(controller.log().WaitFor("detached"));
  EXPECT_TRUE(controller.log().WaitFor("attached", 2));
}

TEST(AgentStream, ARefusalReachesTheAgentWithItsReason) {
  TestController controller(NewId(), 1, "127.0.0.1:0");
  TestAgent first(controller.address(), 1, 10);
  ASSERT_TRUE(first.log().WaitFor("attached"));

  TestAgent second(controller.address(), 1, 10);  // another id, the same name

  EXPECT_TRUE(second.log().WaitFor("refused for good"));
  EXPECT_TRUE(second.log().WaitFor("REASON_NAME_IN_USE"));
}

TEST(AgentStream, AnAgentWithoutAControllerDialsOnAndStopsCleanly) {
  std::string address;
  {
    TestController controller(NewId(), 1, "127.0.0.1:0");
    address = controller.address();
  }
  TestAgent agent(address, 1, 10);

  EXPECT_TRUE(agent.log().WaitFor("detached", 3));
  EXPECT_TRUE(agent.log().WaitFor("UNAVAILABLE", 3));
}

TEST(AgentStream, AProcessThatEndsWithOpenStreamsLeavesNothingBehind) {
  // LeakSanitizer is the judge: the controller goes first, the agent's stream is torn down after.
  std::optional<TestController> controller(std::in_place, NewId(), 1, "127.0.0.1:0");
  std::vector<std::unique_ptr<TestAgent>> agents;
  agents.push_back(std::make_unique<TestAgent>(controller->address(), 50, 50'000));
  ASSERT_TRUE(agents[0]->log().WaitFor("attached"));
  controller->Assign(agents[0]->id(), NewId());
  ASSERT_TRUE(controller->log().WaitFor("frame"));

  agents.clear();
  controller.reset();
}

TEST(AgentStream, APeerThatBreaksTheProtocolIsToldSo) {
  TestController controller(NewId(), 1, "127.0.0.1:0");
  RawPeer peer(controller.address());
  v1::AgentMessage heartbeat;
  heartbeat.mutable_heartbeat();

  peer.Send(heartbeat);

  EXPECT_TRUE(peer.log().WaitFor("INVALID_ARGUMENT"));
}

TEST(AgentStream, AMalformedHelloIsAnsweredBeforeTheStreamEnds) {
  TestController controller(NewId(), 1, "127.0.0.1:0");
  RawPeer peer(controller.address());
  v1::AgentMessage hello;
  hello.mutable_hello()->set_protocol_version(session::kProtocolVersion);

  peer.Send(hello);

  EXPECT_TRUE(peer.log().WaitFor("hello_refused"));
  EXPECT_TRUE(peer.log().WaitFor("FAILED_PRECONDITION"));
}

TEST(AgentStream, AMessageThatIsTooLargeEndsTheStream) {
  for (const size_t bytes : {session::kMaxMessageBytes + 1, session::kMaxMessageBytes * 5}) {
    TestController controller(NewId(), 1, "127.0.0.1:0");
    RawPeer peer(controller.address());
    v1::AgentMessage message;
    message.mutable_frame()->add_outputs()->set_data(std::string(bytes, 'x'));

    peer.Send(message);

    EXPECT_TRUE(peer.log().WaitFor("RESOURCE_EXHAUSTED")) << bytes;
  }
}

TEST(AgentStream, ManyAgentsFindARestartedControllerAgain) {
  constexpr int kNumAgents = 40;
  const std::string store_id = NewId();
  std::optional<TestController> controller(std::in_place, store_id, 1, "127.0.0.1:0");
  const std::string address = controller->address();
  std::vector<std::unique_ptr<TestAgent>> agents;
  for (int i = 0; i < kNumAgents; ++i) {
    agents.push_back(std::make_unique<TestAgent>(address, 3, 100, "host-" + std::to_string(i)));
  }
  ASSERT_TRUE(controller->log().WaitFor("attached", kNumAgents));

  controller.emplace(store_id, 2, address);
  ASSERT_TRUE(controller->log().WaitFor("attached", kNumAgents));
  for (const auto& agent : agents) controller->Assign(agent->id(), NewId());

  for (const auto& agent : agents) EXPECT_TRUE(agent->log().WaitFor("all acknowledged"));
}

}  // namespace
}  // namespace pipeyard::grpc_edge
