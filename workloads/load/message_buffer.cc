#include "workloads/load/message_buffer.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace pipeyard::load {
namespace {

// Pages of one move_pages(2) call: bounds the two arrays that it takes.
constexpr size_t kPagesPerCall = 4096;

}  // namespace

Result<MessageBuffer> MessageBuffer::Map(size_t size) {
  void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return ResourceExhausted("mmap of a message buffer: " + ErrnoText(errno));
  }
  return MessageBuffer(static_cast<std::byte*>(data), size);
}

MessageBuffer::MessageBuffer(MessageBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MessageBuffer& MessageBuffer::operator=(MessageBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MessageBuffer::~MessageBuffer() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

void MessageBuffer::Touch(std::byte value) {
  std::memset(data_, std::to_integer<int>(value), size_);
}

std::vector<void*> MessageBuffer::PageAddresses() const {
  const auto page_size = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<void*> addresses;
  for (size_t offset = 0; offset < size_; offset += page_size) addresses.push_back(data_ + offset);
  return addresses;
}

Result<std::map<int32_t, int64_t>> PagesPerNode(const std::vector<MessageBuffer>& buffers) {
  std::map<int32_t, int64_t> pages;
  for (const MessageBuffer& buffer : buffers) {
    std::vector<void*> addresses = buffer.PageAddresses();
    for (size_t first = 0; first < addresses.size(); first += kPagesPerCall) {
      const size_t count = std::min(kPagesPerCall, addresses.size() - first);
      std::vector<int> nodes(count, -ENOENT);
      // No target nodes: the call moves nothing and says where each page lies (move_pages(2)).
      if (::syscall(SYS_move_pages, 0, count, addresses.data() + first, nullptr, nodes.data(), 0) !=
          0) {
        return Unavailable("move_pages: " + ErrnoText(errno));
      }
      for (const int node : nodes) {
        if (node >= 0) ++pages[node];
      }
    }
  }
  return pages;
}

}  // namespace pipeyard::load
