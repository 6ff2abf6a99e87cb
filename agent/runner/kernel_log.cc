#include "agent/runner/kernel_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

namespace pipeyard::runner {
namespace {

// A record is at most 8 KiB (PRINTK_MESSAGE_MAX, and its devkmsg form).
constexpr size_t kMaxRecord = 8192;

}  // namespace

KernelLog::KernelLog(const char* path)
    : fd_(::open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)) {
  if (fd_ < 0 || ::lseek(fd_, 0, SEEK_END) >= 0) return;
  ::close(fd_);
  fd_ = -1;
}

KernelLog::~KernelLog() {
  if (fd_ >= 0) ::close(fd_);
}

KernelLog::Said KernelLog::Read(uint64_t max_bytes) {
  Said said;
  std::string& text = said.text;
  const auto cut = [&] {
    const size_t line = text.find('\n', text.size() - max_bytes - 1);
    const size_t end = line == std::string::npos ? text.size() : line + 1;
    said.omitted_bytes += end;
    text.erase(0, end);
  };
  char record[kMaxRecord];
  while (fd_ >= 0) {
    const ssize_t size = ::read(fd_, record, sizeof(record));
    if (size > 0) {
      text += FormatRecord({record, static_cast<size_t>(size)});
    } else if (size < 0 && errno == EPIPE) {
      text += "(messages were lost: the kernel's buffer overran)\n";
    } else if (size == 0 || errno != EINTR) {
      break;
    }
    if (text.size() > 2 * max_bytes) cut();
  }
  if (text.size() > max_bytes) cut();
  return said;
}

std::string KernelLog::FormatRecord(std::string_view record) {
  const size_t semicolon = record.find(';');
  if (semicolon == std::string_view::npos) return std::string(record) + "\n";
  std::string_view prefix = record.substr(0, semicolon);
  std::string_view message = record.substr(semicolon + 1);
  message = message.substr(0, message.find('\n'));
  for (int i = 0; i < 2 && prefix.find(',') != std::string_view::npos; ++i) {
    prefix.remove_prefix(prefix.find(',') + 1);
  }
  int64_t microseconds = 0;
  std::from_chars(prefix.data(), prefix.data() + prefix.size(), microseconds);
  return fmt::format("[{}.{:06}] {}\n", microseconds / 1'000'000, microseconds % 1'000'000,
                     message);
}

}  // namespace pipeyard::runner
