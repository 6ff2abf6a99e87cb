#include "controller/core/attempt_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace pipeyard::core {
namespace {

using testing::HasSubstr;

v1::Run TwoCells() {
  v1::Run run;
  run.mutable_summary()->set_run_id("r");
  for (const char* const variant : {"aa11", "ab22"}) {
    v1::Cell& cell = *run.add_cells();
    cell.set_host("rack1/vera");
    cell.set_host_id("h1");
    cell.set_variant_id(variant);
    for (uint32_t index : {1, 2}) {
      v1::Trial& trial = *cell.add_trials();
      trial.set_index(index);
      if (index == 2) continue;
      for (uint32_t number : {1, 2}) {
        v1::Attempt& attempt = *trial.add_attempts();
        attempt.set_number(number);
        attempt.set_attempt_id(std::string(variant) + "-" + std::to_string(number));
      }
    }
  }
  return run;
}

Result<v1::AttemptLog> Find(const std::string& trial, const std::string& attempt = "") {
  v1::GetLogRequest request;
  request.set_trial(trial);
  request.set_attempt(attempt);
  return FindAttempt(TwoCells(), request);
}

std::string IdOf(const std::string& trial, const std::string& attempt = "") {
  const auto found = Find(trial, attempt);
  return found.ok() ? found->attempt().attempt_id() : found.status().message();
}

TEST(FindAttempt, TakesPrefixesAndTheLastAttempt) {
  EXPECT_EQ(IdOf("rack1/vera/aa11/1"), "aa11-2");
  EXPECT_EQ(IdOf("rack1/vera/ab/1", "1"), "ab22-1");
  EXPECT_EQ(IdOf("h1/ab/1", "ab22-1"), "ab22-1");
}

TEST(FindAttempt, SaysWhatIsNotThere) {
  const struct {
    const char* trial;
    const char* attempt;
    StatusCode code;
    const char* part;
  } cases[] = {
      {"", "", StatusCode::kInvalidArgument, "HOST/VARIANT/INDEX"},
      {"vera", "", StatusCode::kInvalidArgument, "HOST/VARIANT/INDEX"},
      {"vera/1", "", StatusCode::kInvalidArgument, "HOST/VARIANT/INDEX"},
      {"/aa11/1", "", StatusCode::kInvalidArgument, "HOST/VARIANT/INDEX"},
      {"h1//1", "", StatusCode::kInvalidArgument, "HOST/VARIANT/INDEX"},
      {"h1/aa11/0", "", StatusCode::kInvalidArgument, "HOST/VARIANT/INDEX"},
      {"h1/aa11/x", "", StatusCode::kInvalidArgument, "HOST/VARIANT/INDEX"},
      {"h1/a/1", "", StatusCode::kInvalidArgument, "ambiguous on rack1/vera: aa11, ab22"},
      {"h2/aa11/1", "", StatusCode::kNotFound, "no cell h2/aa11"},
      {"h1/aa11/3", "", StatusCode::kNotFound, "has no trial 3; it has 2"},
      {"h1/aa11/2", "", StatusCode::kNotFound, "no attempt yet"},
      {"h1/aa11/1", "3", StatusCode::kNotFound, "no attempt 3; it has 2"},
      {"h1/aa11/1", "aa", StatusCode::kInvalidArgument, "ambiguous"},
      {"h1/\x1b[2J/1", "", StatusCode::kNotFound, "h1/\\x1b[2J"},
  };
  for (const auto& wrong : cases) {
    const auto found = Find(wrong.trial, wrong.attempt);
    EXPECT_EQ(found.status().code(), wrong.code) << wrong.trial;
    EXPECT_THAT(found.status().message(), HasSubstr(wrong.part));
  }
}

}  // namespace
}  // namespace pipeyard::core
