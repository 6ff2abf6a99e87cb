#include "storage/sqlite/content_hash.h"

#include <openssl/sha.h>

namespace pipeyard::storage {

std::string ContentHash(std::string_view content) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(content.data()), content.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

}  // namespace pipeyard::storage
