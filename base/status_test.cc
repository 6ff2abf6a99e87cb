#include "base/status.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace pipeyard {
namespace {

Result<int> Half(int value) {
  if (value % 2 != 0) return InvalidArgument("odd");
  return value / 2;
}

Status Quarter(int value, int* out) {
  PIPEYARD_ASSIGN_OR_RETURN(const int half, Half(value));
  PIPEYARD_ASSIGN_OR_RETURN(*out, Half(half));
  return Status::Ok();
}

TEST(Status, ContextStandsBeforeTheMessageAndKeepsTheCode) {
  const Status status = NotFound("open x").WithContext("spool").WithContext("agent");

  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "agent: spool: open x");
  EXPECT_EQ(status.ToString(), "agent: spool: open x [NOT_FOUND]");
  EXPECT_TRUE(Status::Ok().WithContext("agent").ok());
}

TEST(Status, ErrnoIsNamedAndMapped) {
  const Status status = ErrnoStatus("write a.log", ENOSPC);

  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "write a.log: ENOSPC (No space left on device)");
  EXPECT_EQ(ErrnoText(99'999), "errno 99999");
}

TEST(Result, MacrosPassTheFirstErrorUp) {
  int quarter = 0;

  EXPECT_TRUE(Quarter(8, &quarter).ok());
  EXPECT_EQ(quarter, 2);
  EXPECT_EQ(Quarter(6, &quarter).message(), "odd");
}

}  // namespace
}  // namespace pipeyard
