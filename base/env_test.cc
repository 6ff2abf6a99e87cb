#include "base/env.h"

#include <gtest/gtest.h>
#include <stdlib.h>

namespace pipeyard {
namespace {

class PosixEnvTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/pipeyard-env.XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override { EXPECT_TRUE(PosixEnv().RemoveTree(folder_).ok()); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  std::string folder_;
};

TEST_F(PosixEnvTest, AppendedDataIsReadBack) {
  auto file = PosixEnv().OpenAppend(Path("log"));
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->Append("one").ok());
  ASSERT_TRUE((*file)->Append("two").ok());
  ASSERT_TRUE((*file)->Sync().ok());
  ASSERT_TRUE((*file)->Close().ok());

  EXPECT_EQ(*PosixEnv().ReadFile(Path("log")), "onetwo");
  EXPECT_EQ(*PosixEnv().FileSize(Path("log")), 6u);
  ASSERT_TRUE(PosixEnv().Truncate(Path("log"), 3).ok());
  EXPECT_EQ(*PosixEnv().ReadFile(Path("log")), "one");
}

TEST_F(PosixEnvTest, AtomicWriteReplacesAndLeavesNoTemporary) {
  ASSERT_TRUE(PosixEnv().WriteFileAtomic(Path("id"), "old").ok());
  ASSERT_TRUE(PosixEnv().WriteFileAtomic(Path("id"), "new").ok());

  EXPECT_EQ(*PosixEnv().ReadFile(Path("id")), "new");
  EXPECT_EQ(*PosixEnv().ListDir(folder_), std::vector<std::string>{"id"});
}

TEST_F(PosixEnvTest, MissingFileIsNotFoundAndNamed) {
  const Status status = PosixEnv().ReadFile(Path("absent")).status();

  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_NE(status.message().find(Path("absent")), std::string::npos);
  EXPECT_NE(status.message().find("ENOENT"), std::string::npos);
}

TEST_F(PosixEnvTest, FoldersAreMadeWithTheirParentsAndAFileInTheWayIsAnError) {
  ASSERT_TRUE(PosixEnv().CreateDirs(Path("a/b/c")).ok());
  ASSERT_TRUE(PosixEnv().CreateDirs(Path("a/b/c")).ok());
  ASSERT_TRUE(PosixEnv().WriteFileAtomic(Path("a/file"), "").ok());

  EXPECT_TRUE(PosixEnv().Exists(Path("a/b/c")));
  EXPECT_FALSE(PosixEnv().CreateDirs(Path("a/file")).ok());
  EXPECT_FALSE(PosixEnv().CreateDirs(Path("a/file/below")).ok());
}

TEST_F(PosixEnvTest, SecondLockOfAFileIsRefusedUntilTheFirstGoes) {
  auto first = PosixEnv().LockFile(Path("lock"));
  ASSERT_TRUE(first.ok());

  EXPECT_EQ(PosixEnv().LockFile(Path("lock")).status().code(), StatusCode::kFailedPrecondition);
  first->reset();
  EXPECT_TRUE(PosixEnv().LockFile(Path("lock")).ok());
}

TEST_F(PosixEnvTest, RemovedTreeIsGoneAndAnAbsentOneIsNoError) {
  ASSERT_TRUE(PosixEnv().CreateDirs(Path("a/b")).ok());
  ASSERT_TRUE(PosixEnv().RemoveTree(Path("a")).ok());

  EXPECT_FALSE(PosixEnv().Exists(Path("a")));
  EXPECT_TRUE(PosixEnv().RemoveTree(Path("a")).ok());
}

}  // namespace
}  // namespace pipeyard
