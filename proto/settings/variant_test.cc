#include "proto/settings/variant.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdlib>

#include "base/testing/golden.h"
#include "proto/settings/definition.h"
#include "proto/settings/parse.h"
#include "proto/settings/sha256.h"

namespace pipeyard::settings {
namespace {

using Given = std::map<std::string, Value>;

Variant Made(const std::string& target, const std::map<std::string, std::string>& texts,
             const std::string& workload = "transfer") {
  Given given;
  for (const auto& [name, text] : texts) {
    const Definition* const definition = FindDefinition(workload, name);
    EXPECT_NE(definition, nullptr) << name;
    given[name] = *ParseValue(*definition, text);
  }
  Result<Variant> variant = MakeVariant(workload, target, given);
  EXPECT_TRUE(variant.ok()) << variant.status().ToString();
  return *std::move(variant);
}

TEST(Sha256, AgreesWithFips180) {
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256Hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// Stored results are found by these ids for ever.
TEST(Identity, TextsAndIdsAreThoseReleased) {
  const std::vector<Variant> variants = {
      Made("kernel", {}),
      Made("engine", {}),
      Made("engine", {{"writers", "2"}, {"engine.page_cache", "prealloc"}}),
      Made("kernel", {{"writers", "5"},
                      {"readers", "10"},
                      {"message_bytes", "64KiB"},
                      {"duration", "10s"},
                      {"warmup", "0"}}),
      Made("engine", {{"engine.wait_spin", "1.5us"},
                      {"engine.memory_limit", "1GiB"},
                      {"engine.policy", "weighted-interleave:0=3,1=1"}}),
      Made(
          "engine",
          {{"engine.topology",
            R"({"nodes":[{"cpus":"2","memory":"256MiB"},{"cpus":"2","memory":"256MiB"}],"distances":[["10","21"],["21","10"]],"remote_access":"120ns"})"}}),
      Made("kernel", {{"placement.cpus", "50%cpus"},
                      {"placement.memory", "bind:0"},
                      {"knob.transparent_hugepage", "never"},
                      {"allocator", "aged:1"}}),
      Made("engine", {{"accounted", "true"}, {"pages", "512"}}, "bulk"),
  };
  std::string listing;
  for (const Variant& variant : variants) {
    listing += fmt::format("{}\n{}\n", VariantId(variant), CanonicalText(variant));
  }

  pipeyard::testing::ExpectGolden(PIPEYARD_SOURCE_DIR "/proto/settings/testdata/identity.golden",
                                  listing);
}

TEST(Identity, IsTheHashOfTheText) {
  const Variant variant = Made("engine", {{"writers", "2"}, {"engine.page_cache", "prealloc"}});

  EXPECT_EQ(CanonicalText(variant),
            "engine.page_cache=prealloc\ntarget=engine\nworkload=transfer\nworkload_version=1\n"
            "writers=2\n");
  EXPECT_EQ(VariantId(variant), Sha256Hex(CanonicalText(variant)).substr(0, 16));
}

TEST(Identity, EngineSettingsMeanNothingOnTheKernel) {
  const Variant plain = Made("kernel", {});
  const Variant switched = Made("kernel", {{"engine.page_cache", "prealloc"}});

  EXPECT_EQ(switched, plain);
  EXPECT_EQ(VariantId(switched), VariantId(plain));
  EXPECT_EQ(plain.values.count("engine.page_cache"), 0u);
}

TEST(Identity, TargetsAndWorkloadsDiffer) {
  EXPECT_NE(VariantId(Made("kernel", {})), VariantId(Made("engine", {})));
  EXPECT_NE(VariantId(Made("kernel", {})), VariantId(Made("kernel", {}, "churn")));
}

TEST(Variant, IsCompleteAfterDefaults) {
  const Variant variant = Made("engine", {{"writers", "2"}});

  for (const Definition& definition : Definitions()) {
    if (FindDefinition("transfer", definition.name) != &definition) continue;
    ASSERT_EQ(variant.values.count(std::string(definition.name)), 1u) << definition.name;
  }
  EXPECT_EQ(variant.Integer("writers"), 2);
  EXPECT_EQ(variant.Integer("readers"), 1);
  EXPECT_EQ(variant.Integer("message_bytes"), 65536);
  EXPECT_EQ(variant.Integer("pipe_bytes"), 1 << 20);
  EXPECT_EQ(variant.Integer("duration"), 3'000'000'000);
  EXPECT_EQ(variant.Integer("warmup"), 500'000'000);
  EXPECT_EQ(variant.Text("engine.page_cache"), "two-page");
}

TEST(MakeVariant, NamesTheSettingThatIsWrong) {
  struct Case {
    std::string workload, target;
    Given given;
    std::string part;
  };
  const std::vector<Case> cases = {
      {"transfr", "kernel", {}, "unknown workload 'transfr'"},
      {"transfer", "command", {}, "does not drive target 'command'; engine or kernel was meant"},
      {"bulk", "kernel", {}, "does not drive target 'kernel'; engine was meant"},
      {"transfer", "kernel", {{"groups", int64_t{1}}}, "unknown setting 'groups'"},
      {"transfer", "kernel", {{"writers", std::string("1")}}, "writers: holds another kind"},
      {"transfer", "kernel", {{"writers", int64_t{0}}}, "writers: 0 is out of range"},
      {"transfer",
       "kernel",
       {{"engine.page_cache", std::string("x")}},
       "engine.page_cache: 'x' is not one"},
  };
  for (const Case& each : cases) {
    const Result<Variant> variant = MakeVariant(each.workload, each.target, each.given);
    ASSERT_FALSE(variant.ok()) << each.part;
    EXPECT_EQ(variant.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(variant.status().message().find(each.part), std::string::npos)
        << variant.status().message();
  }
}

TEST(VariantText, ShowsNamedSettingsAsAPersonWritesThem) {
  const Variant engine = Made("engine", {{"writers", "2"}, {"message_bytes", "65536B"}});

  EXPECT_EQ(
      VariantText(engine, {"writers", "engine.page_cache", "message_bytes", "duration", "target"}),
      "writers=2;engine.page_cache=two-page;message_bytes=64KiB;duration=3s;target=engine");
  EXPECT_EQ(VariantText(Made("kernel", {}), {"engine.page_cache", "readers"}), "readers=1");
  EXPECT_EQ(VariantText(engine, {}), "");
}

TEST(CheckSupported, NamesWhatIsNotExecutedYet) {
  EXPECT_EQ(CheckSupported(Made("engine", {{"engine.page_cache", "prealloc"}})), Status::Ok());
  EXPECT_EQ(CheckSupported(Made("kernel", {{"knob.ksm", "1"}})).message(),
            "knob.ksm: '1' is not supported yet");
  EXPECT_EQ(CheckSupported(Made("kernel", {{"workers", "processes"}})), Status::Ok());
}

TEST(Wire, CarriesAVariantThereAndBack) {
  const Variant variant = Made("engine", {{"writers", "2"}, {"engine.topology", "host"}});

  const Result<Variant> back = FromProto(ToProto(variant));

  ASSERT_TRUE(back.ok()) << back.status().ToString();
  EXPECT_EQ(*back, variant);
}

TEST(Wire, PassesOverAnUnknownSettingThatTheIdProvesToBeADefault) {
  v1::VariantSettings message = ToProto(Made("kernel", {}));
  v1::Setting* const later = message.add_settings();
  later->set_name("a_setting_of_a_later_version");
  later->mutable_value()->set_text("its default");

  EXPECT_TRUE(FromProto(message).ok());

  message.set_variant_id(std::string(16, '0'));
  const Status refused = FromProto(message).status();
  EXPECT_NE(refused.message().find("a_setting_of_a_later_version"), std::string::npos)
      << refused.message();
}

TEST(Wire, FillsInASettingThatTheIdProvesToBeADefault) {
  v1::VariantSettings message = ToProto(Made("kernel", {{"writers", "2"}}));
  v1::VariantSettings without_default = message;
  v1::VariantSettings without_writers = message;
  for (int i = message.settings_size() - 1; i >= 0; --i) {
    if (message.settings(i).name() == "readers")
      without_default.mutable_settings()->DeleteSubrange(i, 1);
    if (message.settings(i).name() == "writers")
      without_writers.mutable_settings()->DeleteSubrange(i, 1);
  }

  EXPECT_TRUE(FromProto(without_default).ok());
  EXPECT_FALSE(FromProto(without_writers).ok());
}

TEST(Wire, IsNotTrusted) {
  const v1::VariantSettings good = ToProto(Made("engine", {{"writers", "2"}}));
  const auto refused = [&](auto change) {
    v1::VariantSettings message = good;
    change(message);
    const Result<Variant> variant = FromProto(message);
    return !variant.ok() && variant.status().code() == StatusCode::kInvalidArgument;
  };
  const auto writers = [](v1::VariantSettings& m) -> v1::Value& {
    for (v1::Setting& setting : *m.mutable_settings()) {
      if (setting.name() == "writers") return *setting.mutable_value();
    }
    return *m.add_settings()->mutable_value();
  };
  EXPECT_TRUE(refused([](auto& m) { m.set_workload("nope"); }));
  EXPECT_TRUE(refused([](auto& m) { m.set_workload_version(2); }));
  EXPECT_TRUE(refused([](auto& m) { m.set_target("command"); }));
  EXPECT_TRUE(refused([](auto& m) { m.set_target("kernel"); }));
  EXPECT_TRUE(refused([](auto& m) { m.clear_variant_id(); }));
  EXPECT_TRUE(refused([](auto& m) { m.set_variant_id("0123456789abcdef"); }));
  EXPECT_TRUE(refused([](auto& m) { *m.add_settings() = m.settings(0); }));
  EXPECT_TRUE(refused([&](auto& m) { writers(m).Clear(); }));
  EXPECT_TRUE(refused([&](auto& m) { writers(m).set_text("2"); }));
  EXPECT_TRUE(refused([&](auto& m) { writers(m).set_integer(3); }));
  EXPECT_TRUE(refused([&](auto& m) { writers(m).set_integer(-1); }));
  EXPECT_TRUE(refused([](auto& m) {
    for (int i = 0; i < 2000; ++i) m.add_settings()->set_name("x");
  }));
}

// A legal value of a definition, now and then its default.
rc::Gen<Value> ValueOf(const Definition& definition) {
  switch (definition.kind) {
    case Kind::kFlag:
      return rc::gen::map(rc::gen::arbitrary<bool>(), [](bool flag) { return Value(flag); });
    case Kind::kCount:
    case Kind::kBytes:
    case Kind::kDuration:
      return rc::gen::map(
          rc::gen::inRange(definition.min, std::min(definition.max, int64_t{1} << 40)),
          [](int64_t integer) { return Value(integer); });
    case Kind::kChoice:
      return rc::gen::map(rc::gen::inRange<size_t>(0, definition.choices.size()),
                          [&](size_t i) { return Value(std::string(definition.choices[i])); });
    case Kind::kText: {
      std::vector<Value> texts;
      for (const char* const text :
           {"", "bind:0", "weighted-interleave:0=3,1=1", "node0", "0-2", "fresh", "aged:1"}) {
        const bool is_legal = definition.check_text == nullptr || definition.check_text(text).ok();
        if (is_legal) texts.emplace_back(std::string(text));
      }
      return rc::gen::elementOf(texts);
    }
    default:
      return rc::gen::just(definition.default_value);
  }
}

Given AnyGiven() {
  Given given;
  for (const Definition& definition : Definitions()) {
    if (FindDefinition("transfer", definition.name) != &definition) continue;
    if (*rc::gen::inRange(0, 4) == 0) given[std::string(definition.name)] = *ValueOf(definition);
  }
  return given;
}

// PIPEYARD_SEED repeats a failure; rapidcheck prints the configuration that it ran with.
bool Holds(const char* what, const std::function<void()>& property) {
  if (const char* seed = std::getenv("PIPEYARD_SEED")) {
    setenv("RC_PARAMS", fmt::format("seed={}", seed).c_str(), 1);
  }
  return rc::check(what, property);
}

TEST(IdentityProperty, ADefaultGivenEqualsADefaultLeftOut) {
  EXPECT_TRUE(Holds("default given == left out", [] {
    const Given given = AnyGiven();
    Given with_defaults = given;
    for (const Definition& definition : Definitions()) {
      if (FindDefinition("transfer", definition.name) != &definition) continue;
      with_defaults.emplace(definition.name, definition.default_value);
    }
    const Variant a = *MakeVariant("transfer", "engine", given);
    const Variant b = *MakeVariant("transfer", "engine", with_defaults);
    RC_ASSERT(a == b);
    RC_ASSERT(VariantId(a) == VariantId(b));
  }));
}

TEST(IdentityProperty, DifferentVariantsHaveDifferentTexts) {
  EXPECT_TRUE(Holds("texts are injective", [] {
    const Variant a = *MakeVariant("transfer", "engine", AnyGiven());
    const Variant b = *MakeVariant("transfer", "engine", AnyGiven());
    RC_ASSERT((a == b) == (CanonicalText(a) == CanonicalText(b)));
  }));
}

TEST(IdentityProperty, TheWireKeepsEveryVariant) {
  EXPECT_TRUE(Holds("there and back", [] {
    const std::string target = *rc::gen::element(std::string("engine"), std::string("kernel"));
    const Variant variant = *MakeVariant("transfer", target, AnyGiven());
    const Result<Variant> back = FromProto(ToProto(variant));
    RC_ASSERT(back.ok());
    RC_ASSERT(*back == variant);
  }));
}

TEST(IdentityProperty, WhatIsShownReadsBack) {
  EXPECT_TRUE(Holds("display reads back", [] {
    for (const Definition& definition : Definitions()) {
      const Value value = *ValueOf(definition);
      const Result<Value> back = ParseValue(definition, FormatValue(definition, value));
      RC_ASSERT(back.ok());
      RC_ASSERT(*back == value);
    }
  }));
}

}  // namespace
}  // namespace pipeyard::settings
