#include "agent/spool/record_format.h"

#include "agent/spool/crc32c.h"

namespace pipeyard::spool {
namespace {

void PutLittleEndian(uint64_t value, int num_bytes, std::string& out) {
  for (int i = 0; i < num_bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

uint64_t GetLittleEndian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i > 0; --i) value = value << 8 | static_cast<uint8_t>(bytes[i - 1]);
  return value;
}

}  // namespace

void AppendRecord(RecordType type, std::string_view payload, std::string& out) {
  const char type_byte = static_cast<char>(type);
  PutLittleEndian(payload.size(), 4, out);
  PutLittleEndian(Crc32c(payload, Crc32c({&type_byte, 1})), 4, out);
  out.push_back(type_byte);
  out.append(payload);
}

ReadOutcome ReadRecord(std::string_view log, size_t offset, Record& record) {
  if (offset >= log.size()) return ReadOutcome::kEnd;
  const std::string_view rest = log.substr(offset);
  if (rest.size() < kRecordHeaderBytes) return ReadOutcome::kDamaged;
  const uint64_t length = GetLittleEndian(rest.substr(0, 4));
  if (length > kMaxPayloadBytes || length > rest.size() - kRecordHeaderBytes)
    return ReadOutcome::kDamaged;
  const std::string_view checked = rest.substr(kRecordHeaderBytes - 1, length + 1);
  if (Crc32c(checked) != GetLittleEndian(rest.substr(4, 4))) return ReadOutcome::kDamaged;
  const auto type = static_cast<RecordType>(checked[0]);
  if (type != RecordType::kAssignment && type != RecordType::kFrame && type != RecordType::kAck) {
    return ReadOutcome::kDamaged;
  }
  record = {type, checked.substr(1), offset + kRecordHeaderBytes + length};
  return ReadOutcome::kRecord;
}

std::string EncodeThrough(uint64_t through) {
  std::string payload;
  PutLittleEndian(through, 8, payload);
  return payload;
}

uint64_t DecodeThrough(std::string_view payload) {
  return payload.size() == 8 ? GetLittleEndian(payload) : 0;
}

}  // namespace pipeyard::spool
