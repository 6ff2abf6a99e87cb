#include "storage/sqlite/file_header.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>

namespace pipeyard::storage {
namespace {

constexpr size_t kHeaderBytes = 100;
constexpr size_t kSchemaNumberOffset = 60;
constexpr size_t kApplicationIdOffset = 68;
constexpr std::string_view kMagic("SQLite format 3\0", 16);

int32_t BigEndian(const char* bytes) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return static_cast<int32_t>(value);
}

}  // namespace

Result<std::optional<FileHeader>> ReadFileHeader(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return ErrnoStatus(fmt::format("open {}", path), errno == 0 ? EIO : errno);
  std::array<char, kHeaderBytes> bytes{};
  file.read(bytes.data(), bytes.size());
  if (file.gcount() < static_cast<std::streamsize>(bytes.size()) ||
      std::string_view(bytes.data(), kMagic.size()) != kMagic) {
    return std::optional<FileHeader>();
  }
  return std::optional<FileHeader>(FileHeader{BigEndian(bytes.data() + kApplicationIdOffset),
                                              BigEndian(bytes.data() + kSchemaNumberOffset)});
}

}  // namespace pipeyard::storage
