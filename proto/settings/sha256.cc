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

const EVP_MD* Digest() {
  static const EVP_MD* const kDigest = FetchSha256();
  return kDigest;
}

void MustHold(int result) {
  if (result == 1) return;
  std::fputs("settings: SHA-256 failed\n", stderr);
  std::abort();
}

}  // namespace

struct Sha256::Context {
  EVP_MD_CTX* const digest = EVP_MD_CTX_new();
  ~Context() { EVP_MD_CTX_free(digest); }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  MustHold(context_->digest != nullptr ? EVP_DigestInit_ex2(context_->digest, Digest(), nullptr)
                                       : 0);
}

Sha256::~Sha256() = default;

void Sha256::Add(std::string_view part) {
  MustHold(EVP_DigestUpdate(context_->digest, part.data(), part.size()));
}

std::string Sha256::Hex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned int size = 0;
  MustHold(EVP_DigestFinal_ex(context_->digest, bytes.data(), &size));
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * size);
  for (unsigned int i = 0; i < size; ++i) {
    hex.push_back(kDigits[bytes[i] >> 4]);
    hex.push_back(kDigits[bytes[i] & 15]);
  }
  return hex;
}

std::string Sha256Hex(std::string_view data) {
  Sha256 digest;
  digest.Add(data);
  return digest.Hex();
}

}  // namespace pipeyard::settings
