// MessageBuffer: the memory that one worker writes from or reads into, mapped by itself so that its
// pages can be asked for.
//
// Thread safety: thread-compatible. Ownership: unmaps at destruction.
#pragma once

#include <cstddef>

#include "base/status.h"

namespace pipeyard::load {

class MessageBuffer {
 public:
  MessageBuffer() = default;
  MessageBuffer(MessageBuffer&& other) noexcept;
  MessageBuffer& operator=(MessageBuffer&& other) noexcept;
  ~MessageBuffer();

  // Anonymous private pages that nobody has touched yet. size > 0. Errors: kResourceExhausted.
  static Result<MessageBuffer> Map(size_t size);

  // Writes every byte. The thread that will use the buffer does this, so that its pages come from
  // where its policy says.
  void Touch(std::byte value);

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  MessageBuffer(std::byte* data, size_t size) : data_(data), size_(size) {}

  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace pipeyard::load
