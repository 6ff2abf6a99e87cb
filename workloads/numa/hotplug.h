// Hotplug events of CPUs, memory and nodes, as the kernel announces them to whoever listens.
//
// The source of events is one datagram socket: the kernel's (NETLINK_KOBJECT_UEVENT), or any other
// that a test writes to. What the machine looks like after an event is not in the event: read the
// topology anew.
//
// Thread safety: thread-compatible. Ownership: closes its socket.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace pipeyard::numa {

struct HotplugEvent {
  std::string action;     // "online", "offline", "add", "remove"
  std::string subsystem;  // "memory", "node", "cpu"
  std::string device;     // last part of the device's path: "memory32", "node1"

  // "memory32 online".
  std::string ToString() const { return device + " " + action; }
};

// A message as the kernel sends it: a summary, then KEY=value, each ended by a zero byte. nullopt
// for what is no event of CPUs, memory or nodes that changes a topology, and for noise: nothing
// from a socket is trusted.
std::optional<HotplugEvent> ParseHotplugEvent(std::string_view message);

class HotplugListener {
 public:
  // The kernel's announcements from now on. Errors: as socket(2) and bind(2), where the system
  // forbids it (some containers).
  static Result<std::unique_ptr<HotplugListener>> Open();
  // Reads datagrams from `fd`, which it owns from now on; for tests.
  explicit HotplugListener(int fd) : fd_(fd) {}

  HotplugListener(const HotplugListener&) = delete;
  HotplugListener& operator=(const HotplugListener&) = delete;
  ~HotplugListener();

  // Readable when there is something; for poll(2).
  int fd() const { return fd_; }
  // What has come since, in order; does not wait. An overrun of the socket, after which events may
  // be missing, is an event with the action "lost".
  std::vector<HotplugEvent> Read();

 private:
  const int fd_;
};

}  // namespace pipeyard::numa
