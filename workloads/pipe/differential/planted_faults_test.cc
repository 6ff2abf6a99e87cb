// Shows that the comparison finds faults: the model, which agrees with the kernel, is given one
// wrong rule at a time; each must be found and shrunk to a case that a reader takes in at a glance.

#include <gtest/gtest.h>

#include <sstream>

#include "workloads/memory/testing.h"
#include "workloads/pipe/differential/kernel_system.h"
#include "workloads/pipe/differential/model_subject.h"
#include "workloads/pipe/differential/privilege.h"

namespace pipeyard::pipe::differential {
namespace {

// The longest case that any of the faults needs, with creation.
constexpr size_t kMaxShrunk = 8;
// To find a fault in, which ends it, or to show that there is none.
constexpr uint64_t kOperationsToFind = 1'000'000;
constexpr uint64_t kOperationsWithout = 100'000;

struct Planted {
  Fault fault;
  Role role = Role::kAsIs;  // who sees the difference
};

RunSettings ForTheModel() {
  RunSettings settings;
  settings.has_watches = false;
  return settings;
}

// "N" operations, then what differed; empty where nothing did.
std::string CompareWith(Fault fault, uint64_t seed) {
  const uint64_t num_operations = fault == Fault::kNone ? kOperationsWithout : kOperationsToFind;
  const ComparisonReport report =
      Compare(ForTheModel(), MakeModelSubject(fault), seed, num_operations);
  if (report.difference.empty()) return "";
  return std::to_string(report.num_shrunk) + " operations: " + report.difference;
}

bool MayHaveUserOfItsOwn() {
  const Result<std::string> answer =
      RunAs(Role::kUnprivileged, [] { return std::string(HasUserOfItsOwn() ? "own" : "shared"); });
  return answer.ok() && *answer == "own";
}

std::string NameOfPlanted(const ::testing::TestParamInfo<Planted>& planted) {
  return std::string(FaultName(planted.param.fault));
}

std::string NameOfRole(const ::testing::TestParamInfo<Role>& role) {
  return role.param == Role::kAsIs           ? "AsIs"
         : role.param == Role::kUnprivileged ? "Unprivileged"
                                             : "WithoutResource";
}

class PlantedFault : public ::testing::TestWithParam<Planted> {};

TEST_P(PlantedFault, IsFoundAndShrunk) {
  const uint64_t seed = memory::TestSeed(11);
  if (GetParam().fault == Fault::kQuietWriteSignals && !KernelSystem::CanWriteQuietly()) {
    GTEST_SKIP() << "this kernel knows no RWF_NOSIGNAL for pipes";
  }
  if (GetParam().role == Role::kWithoutResource && !EffectiveCapabilities().sys_admin) {
    GTEST_SKIP() << "this user has no CAP_SYS_ADMIN";
  }
  if (GetParam().role == Role::kUnprivileged && !MayHaveUserOfItsOwn()) {
    GTEST_SKIP() << "only root with CAP_SETUID and CAP_SETGID comes near a soft limit";
  }

  const Result<std::string> found =
      RunAs(GetParam().role, [&] { return CompareWith(GetParam().fault, seed); });

  ASSERT_TRUE(found.ok()) << found.status().ToString();
  ASSERT_FALSE(found->empty()) << "not found in " << kOperationsToFind << " operations";
  size_t num_shrunk = 0;
  std::istringstream(*found) >> num_shrunk;
  EXPECT_GE(num_shrunk, 1u) << *found;
  EXPECT_LE(num_shrunk, kMaxShrunk) << *found;
}

INSTANTIATE_TEST_SUITE_P(
    Differential, PlantedFault,
    ::testing::Values(Planted{Fault::kMergesAcrossConsumed}, Planted{Fault::kMergesIntoPackets},
                      Planted{Fault::kMergesOnlyWholeWrites}, Planted{Fault::kMergesAcrossPages},
                      Planted{Fault::kNeverMerges}, Planted{Fault::kEmptyWriteTakesSlot},
                      Planted{Fault::kEmptyWriteAsksReaders}, Planted{Fault::kShortWriteOfAtomic},
                      Planted{Fault::kKeepsRestOfPacket}, Planted{Fault::kReadsAcrossPackets},
                      Planted{Fault::kPacketSticksToFile}, Planted{Fault::kEndOfFileIsEagain},
                      Planted{Fault::kEofBeforeData}, Planted{Fault::kBrokenPipeWithoutSignal},
                      Planted{Fault::kQuietWriteSignals}, Planted{Fault::kBusyByBytes},
                      Planted{Fault::kRoundsSizeDown},
                      Planted{Fault::kShrinkAsksQuota, Role::kUnprivileged},
                      Planted{Fault::kReachingIsOver, Role::kUnprivileged},
                      Planted{Fault::kOneSlotOverSoft, Role::kUnprivileged},
                      Planted{Fault::kAdminIgnoresMaxSize, Role::kWithoutResource},
                      Planted{Fault::kResizeKeepsPosition}, Planted{Fault::kQueuedCountsSlots},
                      Planted{Fault::kWritableByBytes}, Planted{Fault::kHangupOnlyWhenEmpty},
                      Planted{Fault::kNoErrorWithoutReaders}),
    NameOfPlanted);

class ModelWithoutFault : public ::testing::TestWithParam<Role> {};

TEST_P(ModelWithoutFault, AgreesWithTheKernel) {
  const uint64_t seed = memory::TestSeed(12);

  const Result<std::string> found =
      RunAs(GetParam(), [&] { return CompareWith(Fault::kNone, seed); });

  ASSERT_TRUE(found.ok()) << found.status().ToString();
  EXPECT_EQ(*found, "");
}

INSTANTIATE_TEST_SUITE_P(Differential, ModelWithoutFault,
                         ::testing::Values(Role::kAsIs, Role::kUnprivileged,
                                           Role::kWithoutResource),
                         NameOfRole);

}  // namespace
}  // namespace pipeyard::pipe::differential
