#include "agent/spool/record_format.h"

#include <gtest/gtest.h>

#include "agent/spool/crc32c.h"

namespace pipeyard::spool {
namespace {

TEST(Crc32c, AgreesWithTheValuesOfRfc3720) {
  std::string ascending;
  for (int i = 0; i < 32; ++i) ascending.push_back(static_cast<char>(i));

  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(Crc32c(ascending), 0x46dd794eu);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
}

TEST(Crc32c, ContinuesFromTheChecksumOfAPrefix) {
  EXPECT_EQ(Crc32c("456789", Crc32c("123")), Crc32c("123456789"));
}

TEST(RecordFormat, LaysARecordOutAsDocumented) {
  std::string bytes;
  AppendRecord(RecordType::kFrame, "abc", bytes);

  // Length 3, then CRC-32C of "\x02" "abc", then the type, then the payload.
  EXPECT_EQ(bytes.substr(0, 4), std::string("\x03\0\0\0", 4));
  EXPECT_EQ(bytes.substr(8),
            "\x02"
            "abc");
  uint32_t checksum = 0;
  for (int i = 3; i >= 0; --i) checksum = checksum << 8 | static_cast<uint8_t>(bytes[4 + i]);
  EXPECT_EQ(checksum, Crc32c("\x02"
                             "abc"));
}

TEST(RecordFormat, ReadsBackWhatWasAppended) {
  std::string bytes;
  AppendRecord(RecordType::kAssignment, "", bytes);
  AppendRecord(RecordType::kAck, EncodeThrough(0x0102030405060708), bytes);

  Record first;
  ASSERT_EQ(ReadRecord(bytes, 0, first), ReadOutcome::kRecord);
  Record second;
  ASSERT_EQ(ReadRecord(bytes, first.end, second), ReadOutcome::kRecord);

  EXPECT_EQ(first.type, RecordType::kAssignment);
  EXPECT_EQ(DecodeThrough(second.payload), 0x0102030405060708u);
  EXPECT_EQ(ReadRecord(bytes, second.end, second), ReadOutcome::kEnd);
}

TEST(RecordFormat, EveryShortenedRecordIsDamaged) {
  std::string bytes;
  AppendRecord(RecordType::kFrame, "payload", bytes);

  for (size_t size = 1; size < bytes.size(); ++size) {
    Record record;
    EXPECT_EQ(ReadRecord(std::string_view(bytes).substr(0, size), 0, record), ReadOutcome::kDamaged)
        << size;
  }
}

TEST(RecordFormat, EveryFlippedBitIsDamage) {
  std::string bytes;
  AppendRecord(RecordType::kFrame, "payload", bytes);

  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    Record record;
    EXPECT_EQ(ReadRecord(damaged, 0, record), ReadOutcome::kDamaged) << bit;
  }
}

TEST(RecordFormat, ZerosAreDamage) {
  Record record;
  EXPECT_EQ(ReadRecord(std::string(64, '\0'), 0, record), ReadOutcome::kDamaged);
}

}  // namespace
}  // namespace pipeyard::spool
