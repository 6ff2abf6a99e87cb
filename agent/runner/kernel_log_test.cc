#include "agent/runner/kernel_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace pipeyard::runner {
namespace {

using testing::HasSubstr;

TEST(KernelLog, FormatsARecordWithItsTime) {
  EXPECT_EQ(KernelLog::FormatRecord("4,1234,5000042,-;a warning\n SUBSYSTEM=cpu\n"),
            "[5.000042] a warning\n");
  EXPECT_EQ(KernelLog::FormatRecord("no record"), "no record\n");
  EXPECT_EQ(KernelLog::FormatRecord(";"), "[0.000000] \n");
}

TEST(KernelLog, HearsWhatComesAfterItsBeginning) {
  const std::string path = testing::TempDir() + "/kmsg." + std::to_string(::getpid());
  std::ofstream(path) << "4,1,1,-;before\n";
  KernelLog log(path.c_str());
  EXPECT_EQ(log.Read(1000).text, "");
  std::ofstream(path, std::ios::app) << "4,2,2000000,-;meanwhile\n";

  EXPECT_EQ(log.Read(1000).text, "[2.000000] meanwhile\n");
  EXPECT_EQ(log.Read(1000).text, "");
  std::filesystem::remove(path);
}

TEST(KernelLog, KeepsTheNewestWholeLinesAndCountsTheOthers) {
  const std::string path = testing::TempDir() + "/kmsg." + std::to_string(::getpid());
  std::ofstream(path).close();
  KernelLog log(path.c_str());
  std::ofstream(path, std::ios::app) << "4,2,2000000,-;" << std::string(500, 'x') << "end";

  const KernelLog::Said said = log.Read(5);

  EXPECT_EQ(said.text, "");
  EXPECT_EQ(said.omitted_bytes,
            std::string("[2.000000] ").size() + 500 + std::string("end\n").size());
  std::filesystem::remove(path);
}

TEST(KernelLog, WithoutTheDeviceThereIsNothingToHear) {
  KernelLog log("/nowhere");

  EXPECT_EQ(log.Read(1000).text, "");
}

// This machine's, where root may write into it.
TEST(KernelLog, HearsTheKernel) {
  KernelLog log;
  std::ofstream kmsg("/dev/kmsg");
  // Without the line's end the kernel would wait for more of it.
  kmsg << "<7>pipeyard kernel_log_test " << ::getpid() << '\n' << std::flush;
  if (!kmsg) GTEST_SKIP() << "/dev/kmsg cannot be written here";

  EXPECT_THAT(log.Read(64 << 10).text,
              HasSubstr("pipeyard kernel_log_test " + std::to_string(::getpid())));
}

}  // namespace
}  // namespace pipeyard::runner
