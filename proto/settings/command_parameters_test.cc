#include "proto/settings/command_parameters.h"

#include <gtest/gtest.h>

namespace pipeyard::settings {
namespace {

using Type = CommandParameter::Type;

std::vector<CommandParameter> Parameters() {
  return {{.name = "threads", .type = Type::kInt, .min = 1, .max = 1024},
          {.name = "size", .type = Type::kBytes, .min = 1, .max = 1 << 20, .default_text = "4KiB"},
          {.name = "mode",
           .type = Type::kChoice,
           .choices = {"processes", "threads"},
           .default_text = "processes"}};
}

TEST(CommandParameters, AreCheckedWithTheNameAndWhatWasMeant) {
  const struct {
    std::map<std::string, std::string> given;
    std::string message;
  } cases[] = {
      {{{"threads", "4"}}, ""},
      {{{"threads", "4"}, {"size", "1MiB"}, {"mode", "threads"}}, ""},
      {{}, "its parameter threads has no default; parameters: { threads: ... } was meant"},
      {{{"threads", "0"}}, "threads: 0 is out of range; 1 to 1024 was meant"},
      {{{"threads", "4KiB"}}, "threads: '4KiB' is no whole number; one such as 4 was meant"},
      {{{"threads", "04"}}, "threads: '04' begins with a zero; 4 was meant, without it"},
      {{{"threads", "4"}, {"mode", "fibers"}},
       "mode: 'fibers' is not one of its values; one of processes, threads was meant"},
      {{{"threads", "4"}, {"thread", "4"}},
       "it has no parameter thread; it takes threads, size, mode"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(CheckCommandParameters(Parameters(), c.given).message(), c.message);
  }
  EXPECT_EQ(CheckCommandParameters({}, {{"x", "1"}}).message(),
            "it has no parameter x; it takes none");
}

TEST(CommandParameters, SignatureIsReadBackToTheSame) {
  const std::string text = FormatSignature(Parameters());

  EXPECT_EQ(text,
            "threads:int:1..1024 size:bytes:1..1048576=4KiB "
            "mode:choice:processes|threads=processes");
  const Result<std::vector<CommandParameter>> back = ParseSignature(text);
  ASSERT_TRUE(back.ok()) << back.status().ToString();
  EXPECT_EQ(*back, Parameters());
  ASSERT_TRUE(ParseSignature(FormatSignature({})).ok());
  EXPECT_TRUE(ParseSignature(FormatSignature({}))->empty());
}

TEST(CommandParameters, ASignatureOfAnotherFormIsRefused) {
  for (const char* text : {"", "x", "x:int", "x:int:1", "x:int:2..1", "X:int:1..2", "x:text:1..2",
                           "x:int:1..2 ", "command:int:1..2", "x:int:1..2:3"}) {
    EXPECT_FALSE(ParseSignature(text).ok()) << text;
  }
}

TEST(CommandVariant, HasWhatTheSweepGivesAndNothingElse) {
  const Result<Variant> variant = MakeVariant(
      "command", "command", {{"command", std::string("hackbench")}, {"groups", std::string("4")}});

  ASSERT_TRUE(variant.ok()) << variant.status().ToString();
  EXPECT_EQ(CanonicalText(*variant),
            "command=hackbench\ngroups=4\ntarget=command\nworkload=command\nworkload_version=1\n");
  EXPECT_EQ(GivenCommandParameters(*variant),
            (std::map<std::string, std::string>{{"groups", "4"}}));
  EXPECT_TRUE(CheckSupported(*variant).ok());
  const Result<Variant> back = FromProto(ToProto(*variant));
  ASSERT_TRUE(back.ok()) << back.status().ToString();
  EXPECT_EQ(*back, *variant);
}

TEST(CommandVariant, AParameterCalledDurationIsNoTimeOfOurs) {
  const Result<Variant> variant = MakeVariant(
      "command", "command", {{"command", std::string("x")}, {"duration", std::string("3")}});

  ASSERT_TRUE(variant.ok());
  EXPECT_EQ(CommandedTime(*variant), Nanos(0));
}

TEST(CommandVariant, WithoutACommandOrWithAnEmptyValueIsRefused) {
  EXPECT_EQ(MakeVariant("command", "command", {}).status().message(),
            "command is missing; the name of a command of the hosts was meant");
  EXPECT_EQ(
      MakeVariant("command", "command", {{"command", std::string("x")}, {"groups", std::string()}})
          .status()
          .message(),
      "groups: is empty; a value was meant");
  EXPECT_FALSE(MakeVariant("transfer", "kernel", {{"groups", std::string("4")}}).ok());
}

}  // namespace
}  // namespace pipeyard::settings
