#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/env.h"
#include "storage/sqlite/schema.h"
#include "storage/sqlite/sqlite_store.h"
#include "storage/testing/fixtures.h"

namespace pipeyard::storage {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Status Open(const std::string& state_dir) {
  FakeClock clock;
  const Result<std::unique_ptr<Store>> store = OpenStore(state_dir, clock);
  return store.ok() ? Status::Ok() : store.status();
}

void WriteFile(const std::string& path, const std::string& content) {
  const Status status = PosixEnv().WriteFileAtomic(path, content);
  ASSERT_TRUE(status.ok()) << status.ToString();
}

std::string ReadFile(const std::string& path) { return PosixEnv().ReadFile(path).value(); }

// Runs SQL on a database file, made where there is none.
void RunOn(const std::string& path, const std::string& sql) {
  std::unique_ptr<Connection> connection =
      Connection::Open(path, Connection::Mode::kCreate, "").value();
  const Status status = connection->Execute(sql);
  ASSERT_TRUE(status.ok()) << status.ToString();
}

void ExpectOneLine(const Status& status) {
  EXPECT_THAT(status.message(), Not(HasSubstr("\n"))) << status.ToString();
}

TEST(OpenStore, AFileThatIsNoDatabaseIsRefusedAndLeftAsItIs) {
  for (const std::string& content :
       {std::string(), std::string("not a database\n"), std::string(5000, 'x'),
        std::string("SQLite format 3\0", 16), std::string(4096, '\0')}) {
    TemporaryFolder folder;
    WriteFile(folder.StorePath(), content);

    const Status status = Open(folder.path());

    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status.ToString();
    EXPECT_THAT(status.message(), AllOf(HasSubstr(folder.StorePath()),
                                        HasSubstr("is not a database"), HasSubstr("--state DIR")));
    ExpectOneLine(status);
    EXPECT_EQ(ReadFile(folder.StorePath()), content);
    EXPECT_EQ(PosixEnv().ListDir(folder.path()).value(),
              (std::vector<std::string>{"lock", "store.db"}));
  }
}

TEST(OpenStore, AnotherApplicationsDatabaseIsRefusedAndLeftAsItIs) {
  TemporaryFolder folder;
  RunOn(folder.StorePath(),
        "CREATE TABLE t (x); PRAGMA application_id = 7; PRAGMA user_version = 1");
  const std::string content = ReadFile(folder.StorePath());

  const Status status = Open(folder.path());

  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status.ToString();
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr(folder.StorePath()), HasSubstr("another application")));
  ExpectOneLine(status);
  EXPECT_EQ(ReadFile(folder.StorePath()), content);
}

TEST(OpenStore, ANewerSchemaIsRefusedWithBothNumbersAndLeftAsItIs) {
  TemporaryFolder folder;
  ASSERT_TRUE(Open(folder.path()).ok());
  RunOn(folder.StorePath(), "PRAGMA user_version = 7");
  const std::string content = ReadFile(folder.StorePath());

  const Status status = Open(folder.path());

  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status.ToString();
  EXPECT_THAT(status.message(), AllOf(HasSubstr(folder.StorePath()), HasSubstr("schema 7"),
                                      HasSubstr(fmt::format("schema {}", kSchemaNumber))));
  ExpectOneLine(status);
  EXPECT_EQ(ReadFile(folder.StorePath()), content);
}

TEST(OpenStore, ANewerSchemaThatStandsInTheLogOnlyIsRefusedAndTheLogKept) {
  TemporaryFolder folder;
  ASSERT_TRUE(Open(folder.path()).ok());
  {
    std::unique_ptr<Connection> newer =
        Connection::Open(folder.StorePath(), Connection::Mode::kReadWrite, "").value();
    newer->KeepLogOnClose(true);
    ASSERT_TRUE(newer->Execute("PRAGMA user_version = 7").ok());
  }
  const std::string content = ReadFile(folder.StorePath());
  const std::string log = ReadFile(folder.StorePath() + "-wal");

  const Status status = Open(folder.path());

  EXPECT_THAT(status.message(), HasSubstr("schema 7"));
  EXPECT_EQ(ReadFile(folder.StorePath()), content);
  EXPECT_EQ(ReadFile(folder.StorePath() + "-wal"), log);
}

TEST(OpenStore, ALogWithoutItsDatabaseIsNotBuriedUnderANewStore) {
  for (const char* suffix : {"-wal", "-journal"}) {
    TemporaryFolder folder;
    WriteFile(folder.StorePath() + suffix, "frames");

    const Status status = Open(folder.path());

    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status.ToString();
    EXPECT_THAT(status.message(), HasSubstr(folder.StorePath() + suffix));
    ExpectOneLine(status);
    EXPECT_FALSE(PosixEnv().Exists(folder.StorePath()));
  }
}

TEST(OpenStore, ADamagedStoreIsRefusedAndLeftAsItIs) {
  TemporaryFolder folder;
  ASSERT_TRUE(Open(folder.path()).ok());
  std::string content = ReadFile(folder.StorePath());
  for (size_t i = 4096; i < content.size(); ++i) content[i] = static_cast<char>(i * 7);
  WriteFile(folder.StorePath(), content);

  const Status status = Open(folder.path());

  EXPECT_EQ(status.code(), StatusCode::kDataLoss) << status.ToString();
  EXPECT_THAT(status.message(), AllOf(HasSubstr(folder.StorePath()), HasSubstr("backup")));
  ExpectOneLine(status);
  EXPECT_EQ(ReadFile(folder.StorePath()), content);
}

TEST(OpenStore, TheLogOfADamagedStoreIsKeptForTheRescue) {
  TemporaryFolder folder;
  ASSERT_TRUE(Open(folder.path()).ok());
  {
    std::unique_ptr<Connection> crashed =
        Connection::Open(folder.StorePath(), Connection::Mode::kReadWrite, "").value();
    crashed->KeepLogOnClose(true);
    ASSERT_TRUE(crashed->Execute("INSERT INTO epochs VALUES (99, 0)").ok());
  }
  // The second page, which the log does not hold.
  std::string content = ReadFile(folder.StorePath());
  for (size_t i = 4096; i < 8192; ++i) content[i] = static_cast<char>(i * 7);
  WriteFile(folder.StorePath(), content);
  const std::string log = ReadFile(folder.StorePath() + "-wal");

  const Status status = Open(folder.path());

  EXPECT_EQ(status.code(), StatusCode::kDataLoss) << status.ToString();
  ExpectOneLine(status);
  EXPECT_EQ(ReadFile(folder.StorePath()), content);
  ASSERT_TRUE(PosixEnv().Exists(folder.StorePath() + "-wal"));
  EXPECT_EQ(ReadFile(folder.StorePath() + "-wal"), log);
}

TEST(OpenStore, ASecondControllerOnTheSameFolderIsRefused) {
  TemporaryFolder folder;
  FakeClock clock;
  Result<std::unique_ptr<Store>> first = OpenStore(folder.path(), clock);
  ASSERT_TRUE(first.ok());

  const Status second = Open(folder.path());

  EXPECT_EQ(second.code(), StatusCode::kFailedPrecondition) << second.ToString();
  EXPECT_THAT(second.message(),
              AllOf(HasSubstr(folder.path()), HasSubstr("in use by another controller")));
  ExpectOneLine(second);
  first = Internal("closed");
  EXPECT_TRUE(Open(folder.path()).ok());
}

TEST(OpenStore, AFolderThatCannotBeMadeIsRefused) {
  TemporaryFolder folder;
  WriteFile(folder.path() + "/file", "");

  const Status status = Open(folder.path() + "/file/state");

  EXPECT_EQ(status.code(), StatusCode::kPermissionDenied) << status.ToString();
  EXPECT_THAT(status.message(), AllOf(HasSubstr("/file/state"), HasSubstr("--state DIR")));
  ExpectOneLine(status);
}

TEST(OpenStore, AFolderThatIsNotWritableIsRefused) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  TemporaryFolder folder;
  ASSERT_EQ(::chmod(folder.path().c_str(), 0555), 0);

  const Status status = Open(folder.path());

  ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0);
  EXPECT_EQ(status.code(), StatusCode::kPermissionDenied) << status.ToString();
  EXPECT_THAT(status.message(), HasSubstr(folder.path()));
  ExpectOneLine(status);
}

TEST(OpenStore, MissingFoldersAreMade) {
  TemporaryFolder folder;

  EXPECT_TRUE(Open(folder.path() + "/a/b").ok());
  EXPECT_TRUE(PosixEnv().Exists(folder.path() + "/a/b/store.db"));
}

TEST(OpenStore, WhatACrashedCreationLeftIsReplaced) {
  TemporaryFolder folder;
  WriteFile(folder.StorePath() + ".new", "half a database");
  WriteFile(folder.StorePath() + ".new-journal", "half a journal");

  EXPECT_TRUE(Open(folder.path()).ok());
  EXPECT_FALSE(PosixEnv().Exists(folder.StorePath() + ".new"));
  EXPECT_FALSE(PosixEnv().Exists(folder.StorePath() + ".new-journal"));
}

TEST(OpenStore, TheFileIsMarkedAsOurs) {
  TemporaryFolder folder;
  ASSERT_TRUE(Open(folder.path()).ok());
  std::unique_ptr<Connection> connection =
      Connection::Open(folder.StorePath(), Connection::Mode::kReadOnly, "").value();

  Query application(*connection, "PRAGMA application_id");
  ASSERT_TRUE(application.Next());
  EXPECT_EQ(application.Int(0), kApplicationId);
  EXPECT_EQ(ReadSchemaNumber(*connection).value(), kSchemaNumber);
  Query journal(*connection, "PRAGMA journal_mode");
  ASSERT_TRUE(journal.Next());
  EXPECT_EQ(journal.Text(0), "wal");
}

}  // namespace
}  // namespace pipeyard::storage
