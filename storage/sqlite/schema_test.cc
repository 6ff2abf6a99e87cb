#include "storage/sqlite/schema.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/env.h"
#include "storage/testing/fixtures.h"

namespace pipeyard::storage {
namespace {

using ::testing::HasSubstr;

// Schema, tables and all, as the database itself tells it.
std::string Describe(Connection& connection) {
  std::string text = fmt::format("-- schema {}, application_id {}\n",
                                 ReadSchemaNumber(connection).value(), kApplicationId);
  Query query(connection,
              "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type DESC, name");
  while (query.Next()) text += query.Text(0) + ";\n";
  EXPECT_TRUE(query.status().ok()) << query.status().ToString();
  return text;
}

std::unique_ptr<Connection> MakeStore(const TemporaryFolder& folder) {
  std::unique_ptr<Connection> connection =
      Connection::Open(folder.StorePath(), Connection::Mode::kCreate, "").value();
  const Status status = CreateSchema(*connection);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return connection;
}

// The file of a schema number is written once, by whoever adds the number, and never again.
TEST(Schema, OfThisNumberIsFrozen) {
  TemporaryFolder folder;
  const std::unique_ptr<Connection> connection = MakeStore(folder);
  const std::string description = Describe(*connection);
  const std::string path = fmt::format("{}/storage/sqlite/testdata/schema_{}.golden.sql",
                                       PIPEYARD_SOURCE_DIR, kSchemaNumber);
  if (!PosixEnv().Exists(path)) {
    ASSERT_NE(std::getenv("PIPEYARD_UPDATE_GOLDEN"), nullptr)
        << path << " is missing: a new schema number needs its file (PIPEYARD_UPDATE_GOLDEN=1)";
    ASSERT_TRUE(PosixEnv().WriteFileAtomic(path, description).ok());
  }

  EXPECT_EQ(PosixEnv().ReadFile(path).value(), description)
      << "schema " << kSchemaNumber
      << " is released and does not change: add a schema number with its migration";
}

TEST(Schema, EveryTableIsStrict) {
  TemporaryFolder folder;
  const std::unique_ptr<Connection> connection = MakeStore(folder);
  Query query(*connection,
              "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' "
              "AND strict = 0 AND name NOT LIKE 'sqlite%'");
  while (query.Next()) ADD_FAILURE() << query.Text(0);
  EXPECT_TRUE(query.status().ok()) << query.status().ToString();
}

// A series over all runs of a store must not read what belongs to other series.
TEST(Schema, ASeriesIsReadByIndexFromEndToEnd) {
  TemporaryFolder folder;
  const std::unique_ptr<Connection> connection = MakeStore(folder);
  Query query(*connection,
              "EXPLAIN QUERY PLAN SELECT created_utc, value FROM variants "
              "JOIN hosts ON hosts.name = 'h' JOIN cells USING (variant, host) "
              "JOIN trials USING (cell) JOIN attempts USING (trial) "
              "JOIN runs ON runs.run = cells.run "
              "JOIN metrics ON metrics.metric_id = 'm' "
              "JOIN samples ON samples.attempt = attempts.attempt "
              "AND samples.metric = metrics.metric "
              "WHERE variant_id = 'v' AND outcome = 'ok' ORDER BY created_utc");
  std::string plan;
  while (query.Next()) plan += query.Text(3) + "\n";
  ASSERT_TRUE(query.status().ok()) << query.status().ToString();

  EXPECT_THAT(plan, ::testing::Not(HasSubstr("SCAN "))) << plan;
  EXPECT_THAT(plan, HasSubstr("cells_by_series")) << plan;
  EXPECT_THAT(plan, HasSubstr("SEARCH samples USING PRIMARY KEY")) << plan;
}

TEST(Migrate, AppliesWhatIsAboveTheStoresNumberInOrder) {
  TemporaryFolder folder;
  const std::unique_ptr<Connection> connection = MakeStore(folder);
  const std::vector<Migration> migrations = {
      {1, "CREATE TABLE must_not_be_applied (x INTEGER) STRICT"},
      {2, "CREATE TABLE two (x INTEGER) STRICT; INSERT INTO two VALUES (1)"},
      {3, "ALTER TABLE two ADD COLUMN y INTEGER"}};

  const Status status = Migrate(*connection, migrations);

  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(ReadSchemaNumber(*connection).value(), 3);
  EXPECT_THAT(Describe(*connection), HasSubstr("CREATE TABLE two (x INTEGER, y INTEGER)"));
  EXPECT_THAT(Describe(*connection), ::testing::Not(HasSubstr("must_not_be_applied")));
  EXPECT_TRUE(Migrate(*connection, migrations).ok());
}

TEST(Migrate, LeavesTheOldSchemaWhereAStepFails) {
  TemporaryFolder folder;
  const std::unique_ptr<Connection> connection = MakeStore(folder);
  const std::string before = Describe(*connection);

  const Status status = Migrate(
      *connection, std::vector<Migration>{{2, "CREATE TABLE two (x INTEGER) STRICT; nonsense"}});

  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_THAT(status.message(), HasSubstr("migrate schema 1 to 2"));
  EXPECT_EQ(Describe(*connection), before);
}

TEST(Migrate, RefusesAGap) {
  TemporaryFolder folder;
  const std::unique_ptr<Connection> connection = MakeStore(folder);

  EXPECT_EQ(Migrate(*connection, std::vector<Migration>{{3, "SELECT 1"}}).code(),
            StatusCode::kInternal);
  EXPECT_EQ(ReadSchemaNumber(*connection).value(), 1);
}

TEST(Migrate, LeadsUpToThisProgramsNumber) {
  const int32_t last = Migrations().empty() ? 1 : Migrations().back().to;
  EXPECT_EQ(last, kSchemaNumber);
}

}  // namespace
}  // namespace pipeyard::storage
