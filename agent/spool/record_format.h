// How a spool log lies on disk: a magic word, then records, each checked by itself.
//
//   file    := "PYSPOOL1" record*
//   record  := length:u32  checksum:u32  type:u8  payload[length]        integers little-endian
//   checksum = CRC-32C over type and payload
//   type     : 1 = assignment (payload: v1.Assign), once, the first record
//              2 = frame      (payload: v1.Frame), sequence 1, 2, ... without gaps
//              3 = ack        (payload: through:u64), grows strictly
//
// Thread safety: pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pipeyard::spool {

inline constexpr std::string_view kMagic = "PYSPOOL1";
inline constexpr size_t kRecordHeaderBytes = 9;
// No record is longer: messages are limited to 1 MiB. A longer length is damage.
inline constexpr uint32_t kMaxPayloadBytes = 1 << 20;

enum class RecordType : uint8_t { kAssignment = 1, kFrame = 2, kAck = 3 };

// Appends one record to `out`. Precondition: payload is at most kMaxPayloadBytes.
void AppendRecord(RecordType type, std::string_view payload, std::string& out);

struct Record {
  RecordType type = RecordType::kAssignment;
  std::string_view payload;  // into the bytes that were read
  size_t end = 0;            // offset behind the record
};

enum class ReadOutcome {
  kRecord,
  kEnd,      // nothing stands at the offset
  kDamaged,  // a torn or altered record: nothing at or behind the offset can be trusted
};

// Reads the record at `offset` of a whole log. `record` is set where kRecord is returned.
ReadOutcome ReadRecord(std::string_view log, size_t offset, Record& record);

std::string EncodeThrough(uint64_t through);
// 0 where the payload is not 8 bytes.
uint64_t DecodeThrough(std::string_view payload);

}  // namespace pipeyard::spool
