#include "workloads/numa/hotplug.h"

#include <linux/netlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace pipeyard::numa {
namespace {

// The group to which the kernel itself sends; udevd's is another one.
constexpr uint32_t kKernelGroup = 1;
// lib/kobject_uevent.c: an event has at most 2,048 bytes of variables and a path.
constexpr size_t kMaxMessage = 8192;

bool ChangesTopology(const HotplugEvent& event) {
  if (event.subsystem != "memory" && event.subsystem != "node" && event.subsystem != "cpu") {
    return false;
  }
  return event.action == "online" || event.action == "offline" ||
         (event.subsystem == "node" && (event.action == "add" || event.action == "remove"));
}

}  // namespace

std::optional<HotplugEvent> ParseHotplugEvent(std::string_view message) {
  HotplugEvent event;
  while (!message.empty()) {
    const size_t end = message.find('\0');
    const std::string_view line = message.substr(0, end);
    message.remove_prefix(end == std::string_view::npos ? message.size() : end + 1);
    if (line.starts_with("ACTION=")) event.action = line.substr(7);
    if (line.starts_with("SUBSYSTEM=")) event.subsystem = line.substr(10);
    if (line.starts_with("DEVPATH=")) event.device = line.substr(line.rfind('/') + 1);
  }
  if (!ChangesTopology(event)) return std::nullopt;
  return event;
}

Result<std::unique_ptr<HotplugListener>> HotplugListener::Open() {
  const int fd =
      ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);
  if (fd < 0) return ErrnoStatus("socket of kernel events", errno);
  auto listener = std::make_unique<HotplugListener>(fd);
  sockaddr_nl address = {};
  address.nl_family = AF_NETLINK;
  address.nl_groups = kKernelGroup;
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return ErrnoStatus("bind to kernel events", errno);
  }
  return listener;
}

HotplugListener::~HotplugListener() { ::close(fd_); }

std::vector<HotplugEvent> HotplugListener::Read() {
  std::vector<HotplugEvent> events;
  char message[kMaxMessage];
  while (true) {
    const ssize_t size = ::recv(fd_, message, sizeof(message), MSG_DONTWAIT);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == ENOBUFS) {
      events.push_back({"lost", "node", "events"});
      continue;
    }
    if (size <= 0) return events;
    std::optional<HotplugEvent> event =
        ParseHotplugEvent(std::string_view(message, static_cast<size_t>(size)));
    if (event) events.push_back(std::move(*event));
  }
}

}  // namespace pipeyard::numa
