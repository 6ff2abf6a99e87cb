// SHA-256 (FIPS 180-4), by OpenSSL's libcrypto.
//
// Thread safety: pure function; Sha256 is confined to one thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace pipeyard::settings {

// 64 lower-case hex digits.
std::string Sha256Hex(std::string_view data);

// The same of what comes in parts.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void Add(std::string_view part);
  // Once, in the end.
  std::string Hex();

 private:
  struct Context;
  const std::unique_ptr<Context> context_;
};

}  // namespace pipeyard::settings
