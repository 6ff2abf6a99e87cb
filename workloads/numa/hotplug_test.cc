#include "workloads/numa/hotplug.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace pipeyard::numa {
namespace {

using std::string_literals::operator""s;

std::string Message(const std::string& action, const std::string& subsystem,
                    const std::string& path) {
  return action + "@" + path + "\0ACTION="s + action + "\0DEVPATH="s + path + "\0SUBSYSTEM="s +
         subsystem + "\0SEQNUM=4711\0"s;
}

TEST(HotplugEvents, AreThoseThatChangeATopology) {
  struct Case {
    std::string message;
    std::string expected;  // "": none
  };
  const Case cases[] = {
      {Message("online", "memory", "/devices/system/memory/memory32"), "memory32 online"},
      {Message("offline", "memory", "/devices/system/memory/memory32"), "memory32 offline"},
      {Message("add", "node", "/devices/system/node/node1"), "node1 add"},
      {Message("remove", "node", "/devices/system/node/node1"), "node1 remove"},
      {Message("offline", "cpu", "/devices/system/cpu/cpu1"), "cpu1 offline"},
      // A block that is added is not online yet.
      {Message("add", "memory", "/devices/system/memory/memory32"), ""},
      {Message("change", "node", "/devices/system/node/node1"), ""},
      {Message("add", "block", "/devices/virtual/block/loop0"), ""},
      {"", ""},
      {"\0\0\0"s, ""},
      {"ACTION=online", ""},
      {"ACTION=online\0SUBSYSTEM=memory"s, " online"},
      {"libudev\0\xfe\xed\xca\xfe"s, ""},
  };
  for (const Case& c : cases) {
    const std::optional<HotplugEvent> event = ParseHotplugEvent(c.message);
    EXPECT_EQ(event ? event->ToString() : "", c.expected) << c.message;
  }
}

TEST(HotplugListener, GivesWhatCameSinceAndDoesNotWait) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
  HotplugListener listener(ends[0]);
  EXPECT_TRUE(listener.Read().empty());
  for (const std::string& message :
       {Message("online", "memory", "/devices/system/memory/memory8"), "noise"s,
        Message("add", "node", "/devices/system/node/node3")}) {
    ASSERT_EQ(::send(ends[1], message.data(), message.size(), 0),
              static_cast<ssize_t>(message.size()));
  }

  const std::vector<HotplugEvent> events = listener.Read();

  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].device, "memory8");
  EXPECT_EQ(events[1].device, "node3");
  ::close(ends[1]);
}

TEST(HotplugListener, ListensToThisKernel) {
  const Result<std::unique_ptr<HotplugListener>> listener = HotplugListener::Open();
  if (!listener.ok()) GTEST_SKIP() << listener.status().ToString();

  EXPECT_TRUE((*listener)->Read().empty());
}

}  // namespace
}  // namespace pipeyard::numa
