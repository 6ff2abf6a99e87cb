#include "proto/settings/sha256.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <array>
#include <cstdio>
#include <cstdlib>

namespace pipeyard::settings {
namespace {

// A library context of our own reads no configuration file: an openssl.cnf that offers other
// providers only must not change what an id is, nor whether there is one.
const EVP_MD* FetchSha256() {
  OSSL_LIB_CTX* const context = OSSL_LIB_CTX_new();
  const EVP_MD* const digest = context ? EVP_MD_fetch(context, "SHA256", nullptr) : nullptr;
  if (digest == nullptr) {
    std::fputs("settings: libcrypto offers no SHA-256\n", stderr);
    std::abort();
  }
  return digest;
}

}  // namespace

std::string Sha256Hex(std::string_view data) {
  static const EVP_MD* const kDigest = FetchSha256();
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned int size = 0;
  if (EVP_Digest(data.data(), data.size(), bytes.data(), &size, kDigest, nullptr) != 1) {
    std::fputs("settings: SHA-256 failed\n", stderr);
    std::abort();
  }
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * size);
  for (unsigned int i = 0; i < size; ++i) {
    hex.push_back(kDigits[bytes[i] >> 4]);
    hex.push_back(kDigits[bytes[i] & 15]);
  }
  return hex;
}

}  // namespace pipeyard::settings
