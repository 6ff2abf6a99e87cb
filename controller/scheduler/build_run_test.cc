#include "controller/scheduler/build_run.h"

#include <gtest/gtest.h>

#include <functional>

#include "controller/scheduler/order.h"
#include "controller/scheduler/testing/builders.h"

namespace pipeyard::scheduler {
namespace {

TEST(BuildRun, GivesEachHostEveryVariantInItsOwnSeededOrder) {
  const std::vector<HostView> hosts = {TestHost(2), TestHost(1)};

  const Result<BuiltRun> built = BuildRun(TestSweep(2, 6), hosts, TestRequest(1));

  ASSERT_TRUE(built.ok()) << built.status().ToString();
  const storage::RunRecord& run = built->run;
  ASSERT_EQ(run.cells.size(), 4u);
  EXPECT_EQ(run.cells[0].host_name, "host1");
  EXPECT_EQ(run.cells[3].host_name, "host2");
  const std::vector<OrderVariant> variants = {{0, true, ""}, {1, true, ""}};
  const auto order = TrialOrder(spec::OrderKind::kBlocked, variants, 6, 7, hosts[1].record.host_id);
  for (size_t position = 1; position <= order.size(); ++position) {
    const OrderedTrial& expected = order[position - 1];
    const auto& trial = run.cells[expected.variant_index].trials.at(expected.trial_index - 1);
    EXPECT_EQ(trial.trial_index, expected.trial_index);
    EXPECT_EQ(trial.block, expected.block);
    EXPECT_EQ(trial.position, position);
  }
}

TEST(BuildRun, KeepsWhatTheSweepAndTheRequestSay) {
  spec::Sweep sweep = TestSweep(2, 6);
  sweep.labels = {{"ticket", "MM-123"}, {"rack", "a"}};
  RunRequest request = TestRequest(1);
  request.labels = {{"rack", "b"}};
  request.sets = {"duration=1s"};

  const Result<BuiltRun> built = BuildRun(sweep, std::vector{TestHost(1)}, request);

  ASSERT_TRUE(built.ok());
  const storage::RunRecord& run = built->run;
  EXPECT_EQ(run.order_kind, "blocked");
  EXPECT_EQ(run.order_seed, 7u);
  EXPECT_EQ(run.labels, (std::map<std::string, std::string>{{"rack", "b"}, {"ticket", "MM-123"}}));
  EXPECT_EQ(run.sets, request.sets);
  EXPECT_EQ(run.host_wait_ns, Minutes(10).count());
  ASSERT_EQ(run.variants.size(), 2u);
  EXPECT_EQ(run.variants[1].variant_id, sweep.variants[1].variant_id);
  EXPECT_EQ(run.variants[1].settings.variant_id(), sweep.variants[1].variant_id);
  EXPECT_EQ(run.trial_timeout_ns, (std::vector<int64_t>(2, Seconds(60).count())));
}

TEST(BuildRun, TakesTheDrawnSeedWhereTheSweepHasNone) {
  spec::Sweep sweep = TestSweep(2, 6);
  sweep.seed.reset();
  RunRequest request = TestRequest(1);
  request.drawn_seed = 99;

  EXPECT_EQ(BuildRun(sweep, std::vector{TestHost(1)}, request)->run.order_seed, 99u);
}

TEST(BuildRun, MoreTrialsThanARunMayHaveAreRefusedWithTheirNumber) {
  const std::vector<HostView> hosts = {TestHost(1), TestHost(2)};
  const auto repetitions = static_cast<uint32_t>(kMaxTrials / 4);
  ASSERT_TRUE(BuildRun(TestSweep(2, 1), hosts, TestRequest(1)).ok());

  const Result<BuiltRun> built = BuildRun(TestSweep(2, repetitions + 1), hosts, TestRequest(1));

  ASSERT_FALSE(built.ok());
  EXPECT_EQ(built.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(
      built.status().message(),
      "1000004 trials (2 variants, 250001 repetitions, 2 hosts) are too many; at most 1000000 "
      "a run: fewer repetitions, levels or hosts");
}

struct SelectionCase {
  const char* name;
  std::function<void(spec::Sweep&, HostView&)> change;
  const char* reason;  // empty: it joins
};

TEST(BuildRun, SelectsHosts) {
  const SelectionCase cases[] = {
      {"no selector", [](auto&, auto&) {}, ""},
      {"its name", [](auto& s, auto&) { s.hosts.names = {"host1"}; }, ""},
      {"another name", [](auto& s, auto&) { s.hosts.names = {"host2"}; }, "is not among the names"},
      {"its label",
       [](auto& s, auto& h) {
         s.hosts.labels = {{"rack", "a"}};
         h.record.labels = {{"rack", "a"}};
       },
       ""},
      {"a label it lacks",
       [](auto& s, auto&) {
         s.hosts.labels = {{"rack", "a"}};
       },
       "lacks the label rack=a"},
      {"not a label it has",
       [](auto& s, auto& h) {
         s.hosts.not_labels = {{"noisy", "1"}};
         h.record.labels = {{"noisy", "1"}};
       },
       "has the label noisy=1"},
      {"its class",
       [](auto& s, auto& h) {
         s.hosts.classes = {"vera-2s"};
         h.record.labels = {{"class", "vera-2s"}};
       },
       ""},
      {"a class, and it has none", [](auto& s, auto&) { s.hosts.classes = {"vera-2s"}; },
       "has no label class"},
      {"more nodes than it has", [](auto& s, auto&) { s.hosts.min_nodes = 2; },
       "has 1 node, the sweep asks for 2"},
      {"away for less than host_wait",
       [](auto&, auto& h) {
         h.is_connected = false;
         h.away_for = Minutes(9);
       },
       ""},
      {"away for longer",
       [](auto&, auto& h) {
         h.is_connected = false;
         h.away_for = Minutes(11);
       },
       "is away, for longer than host_wait (10m)"},
  };
  for (const SelectionCase& c : cases) {
    spec::Sweep sweep = TestSweep(2, 6);
    HostView host = TestHost(1);
    c.change(sweep, host);
    HostView other = TestHost(2);
    other.record.labels = {{"rack", "a"}, {"class", "vera-2s"}};
    other.record.facts.add_nodes()->set_id(1);

    const Result<BuiltRun> built = BuildRun(sweep, std::vector{host, other}, TestRequest(1));

    ASSERT_TRUE(built.ok()) << c.name << ": " << built.status().ToString();
    std::string reason;
    for (const LeftOutHost& left_out : built->left_out) {
      if (left_out.host == "host1") reason = left_out.reason;
    }
    EXPECT_EQ(reason, c.reason) << c.name;
  }
}

TEST(BuildRun, WithoutAnyHostIsRefusedWithTheReasons) {
  spec::Sweep sweep = TestSweep(2, 6);
  sweep.hosts.names = {"vera"};

  const Result<BuiltRun> none = BuildRun(sweep, std::vector{TestHost(1)}, TestRequest(1));
  const Result<BuiltRun> empty = BuildRun(TestSweep(2, 6), {}, TestRequest(1));

  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(none.status().message(),
            "no host matches: host1 is not among the names; vera was never seen");
  ASSERT_FALSE(empty.ok());
  EXPECT_NE(empty.status().message().find("start pipeyard-agent"), std::string::npos);
}

TEST(BuildRun, CellsThatTheHostCannotRunAreNotApplicableAndHaveNoTrials) {
  HostView incapable = TestHost(1);
  incapable.record.capabilities = {"transfer:engine"};
  spec::Sweep sweep = TestSweep(2, 6);

  const Result<BuiltRun> built =
      BuildRun(sweep, std::vector{incapable, TestHost(2)}, TestRequest(1));

  ASSERT_TRUE(built.ok());
  const storage::CellRecord& cell = built->run.cells[0];
  EXPECT_EQ(cell.state, storage::CellState::kNotApplicable);
  EXPECT_EQ(cell.reason, "the agent cannot run transfer:kernel");
  EXPECT_TRUE(cell.trials.empty());
  EXPECT_EQ(built->run.cells[2].trials.size(), 6u);
}

TEST(BuildRun, ACommandThatTheHostLacksOrCannotRunSoIsNotApplicable) {
  const struct {
    std::map<std::string, std::string> facts;
    std::string reason;
  } cases[] = {
      {{{"command.bench", "n:int:1..9"}, {"command.bench.program", "/bin/bench sha256:00"}}, ""},
      {{{"command.bench", "written by a later version"}}, ""},
      {{}, "the host has no command bench; a file in its agent's commands.d allows one"},
      {{{"command.bench", "n:int:1..3"}}, "command bench: n: 4 is out of range; 1 to 3 was meant"},
      {{{"command.bench", "none"}}, "command bench: it has no parameter n; it takes none"},
      {{{"command.bench", "n:int:1..9"}, {"command.bench.program", "missing: install it"}},
       "command bench: install it"},
  };
  for (const auto& c : cases) {
    spec::Sweep sweep = TestSweep(1, 6);
    sweep.variants[0].variant =
        settings::MakeVariant("command", "command",
                              {{"command", std::string("bench")}, {"n", std::string("4")}})
            .value();
    HostView host = TestHost(1);
    host.record.capabilities = {"command:command"};
    for (const auto& [name, value] : c.facts) (*host.record.facts.mutable_more())[name] = value;

    const Result<BuiltRun> built = BuildRun(sweep, std::vector{host}, TestRequest(1));

    ASSERT_TRUE(built.ok()) << built.status().ToString();
    EXPECT_EQ(built->run.cells[0].reason, c.reason);
  }
}

TEST(BuildRun, AKernelThatIsNotExpectedMakesTheHostNotApplicable) {
  spec::Sweep sweep = TestSweep(1, 6);
  sweep.expect = {{"kernel", "6.18*"}};

  const Result<BuiltRun> built = BuildRun(sweep, std::vector{TestHost(1)}, TestRequest(1));

  ASSERT_TRUE(built.ok());
  EXPECT_EQ(built->run.cells[0].state, storage::CellState::kNotApplicable);
  EXPECT_EQ(built->run.cells[0].reason, "kernel 6.1.0-18-amd64 does not match 6.18*");
}

TEST(GlobMatches, WholeTextsWithStarsAndQuestionMarks) {
  const struct {
    const char* pattern;
    const char* text;
    bool matches;
  } cases[] = {
      {"6.18*", "6.18.3-rc1", true},
      {"6.18*", "6.1", false},
      {"*", "", true},
      {"", "", true},
      {"", "a", false},
      {"a?c", "abc", true},
      {"a?c", "ac", false},
      {"*b*b", "abab", true},
      {"*b*b", "aba", false},
      {"a*b*c", "a1b2b3c", true},
      {"a*b*c", "a1b2b3", false},
      {"**", "x", true},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(GlobMatches(c.pattern, c.text), c.matches) << c.pattern << " " << c.text;
  }
}

TEST(ExpectedTrialTime, IsWarmUpPlusDurationPlusStartUp) {
  const spec::Sweep sweep = TestSweep(1, 1);
  const v1::VariantSettings settings = settings::ToProto(sweep.variants[0].variant);
  const Nanos commanded(sweep.variants[0].variant.Integer("duration") +
                        sweep.variants[0].variant.Integer("warmup"));

  const std::optional<Nanos> expected = ExpectedTrialTime(settings);

  ASSERT_TRUE(expected.has_value());
  EXPECT_GT(*expected, commanded);
  EXPECT_LT(*expected, commanded + Seconds(1));
  EXPECT_FALSE(ExpectedTrialTime(v1::VariantSettings()).has_value());
}

}  // namespace
}  // namespace pipeyard::scheduler
