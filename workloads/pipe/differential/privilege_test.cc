// Roles that a process can take, whatever it may do itself.

#include "workloads/pipe/differential/privilege.h"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pipeyard::pipe::differential {
namespace {

// "own" or "shared", by whose user id it is, then "limited" or "free" of the user's limits.
std::string DescribeSelf() {
  return std::string(HasUserOfItsOwn() ? "own" : "shared") + " " +
         (EffectiveCapabilities().ignores_user_limits() ? "free" : "limited");
}

bool DropEffective(uint32_t capabilities) {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (::syscall(SYS_capget, &header, data) != 0) return false;
  data[0].effective &= ~capabilities;
  return ::syscall(SYS_capset, &header, data) == 0;
}

TEST(Privilege, AnUnprivilegedChildIsBoundByTheUsersLimits) {
  const Result<std::string> role = RunAs(Role::kUnprivileged, DescribeSelf);

  ASSERT_TRUE(role.ok()) << role.status().ToString();
  EXPECT_NE(role->find("limited"), std::string::npos) << *role;
}

TEST(Privilege, RootWithoutSetuidStaysRootButIsBoundAllTheSame) {
  const Result<std::string> inner = RunAs(Role::kWithoutResource, [] {
    if (!DropEffective(1u << CAP_SETUID | 1u << CAP_SETGID)) return std::string("capset failed");
    const Result<std::string> role = RunAs(Role::kUnprivileged, DescribeSelf);
    return role.ok() ? *role : role.status().ToString();
  });

  ASSERT_TRUE(inner.ok()) << inner.status().ToString();
  EXPECT_EQ(*inner, "shared limited");
}

TEST(Privilege, WhatTheChildSaysComesBackWhole) {
  const std::string text(300'000, 'x');
  const Result<std::string> said = RunAs(Role::kWithoutResource, [&] { return text; });

  ASSERT_TRUE(said.ok()) << said.status().ToString();
  EXPECT_EQ(*said, text);
}

TEST(Privilege, AChildThatDiesIsAnError) {
  const Result<std::string> said =
      RunAs(Role::kWithoutResource, []() -> std::string { ::_exit(9); });

  EXPECT_EQ(said.status().code(), StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace pipeyard::pipe::differential
