// KernelLog: what the kernel said (/dev/kmsg) while an attempt ran.
//
// Thread safety: confined to one thread. Ownership: keeps the device open.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pipeyard::runner {

class KernelLog {
 public:
  // From now on. Where the device cannot be read (a container, dmesg_restrict without CAP_SYSLOG)
  // there is nothing to hear, and no error: the log helps people, nothing is decided by it.
  explicit KernelLog(const char* path = "/dev/kmsg");
  ~KernelLog();
  KernelLog(const KernelLog&) = delete;
  KernelLog& operator=(const KernelLog&) = delete;

  struct Said {
    std::string text;            // a line a message, the newest; says where the kernel overran
    uint64_t omitted_bytes = 0;  // that stood before them
  };
  // What has come since, whole lines of at most `max_bytes`. Does not wait.
  Said Read(uint64_t max_bytes);

  // "[12.345678] message" of a record of the device: "PRIORITY,SEQUENCE,MICROSECONDS,FLAGS;message"
  // and lines that begin with a blank. Source: the kernel's Documentation/ABI/testing/dev-kmsg.
  static std::string FormatRecord(std::string_view record);

 private:
  int fd_ = -1;
};

}  // namespace pipeyard::runner
