// The first 100 bytes of a database file, read without SQLite, so that a file that is not ours
// stays as it is.
//
// Source: sqlite.org/fileformat2.html, 1.3 (magic at 0, user_version at 60, application_id at 68,
// big-endian). Thread safety: pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"

namespace pipeyard::storage {

struct FileHeader {
  int32_t application_id = 0;
  int32_t schema_number = 0;  // what a write-ahead log may have raised since
};

// nullopt where the file is no SQLite database; an empty file is none.
Result<std::optional<FileHeader>> ReadFileHeader(const std::string& path);

}  // namespace pipeyard::storage
