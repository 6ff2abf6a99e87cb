#include "workloads/load/message_buffer.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace pipeyard::load {
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

}  // namespace pipeyard::load
