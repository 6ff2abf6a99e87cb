// Variant: one combination of settings, its canonical text and its id.
//
// Identity: first 16 hex digits of SHA-256 over the canonical text, which is `name=value\n` lines
// sorted bytewise, UTF-8: workload, workload_version, target, and every setting whose value differs
// from its default. Serialized protobuf is never hashed.
//
// Thread safety: values and pure functions.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/units.h"
#include "pipeyard/v1/settings.pb.h"
#include "proto/settings/value.h"

namespace pipeyard::settings {

struct Variant {
  std::string workload;
  int64_t workload_version = 1;
  std::string target;
  // Complete after defaults: every definition that applies to workload and target, by name.
  std::map<std::string, Value> values;

  friend bool operator==(const Variant&, const Variant&) = default;

  // Precondition: the setting is in `values` and holds this kind. For readers of a validated
  // variant.
  int64_t Integer(std::string_view name) const;
  double Number(std::string_view name) const;
  bool Flag(std::string_view name) const;
  const std::string& Text(std::string_view name) const;
  const std::string& Json(std::string_view name) const;
};

// Fills in defaults, drops settings that do not apply to the target (engine.* on kernel).
// Errors: kInvalidArgument names the setting: unknown, wrong kind, out of range, not a choice.
Result<Variant> MakeVariant(std::string workload, std::string target,
                            const std::map<std::string, Value>& given);

// Warm-up and duration together; 0 where the variant runs until its work is done.
Nanos CommandedTime(const Variant& variant);

std::string CanonicalText(const Variant& variant);
std::string VariantId(const Variant& variant);

// "writers=2;engine.page_cache=prealloc" of the named settings, in that order, values as a person
// writes them (64KiB, 10s).
std::string VariantText(const Variant& variant, const std::vector<std::string>& names);
// One value as a person writes it in a sweep.
std::string DisplayValue(std::string_view workload, std::string_view name, const Value& value);

// Whether this version executes the variant. Errors: kUnimplemented: "pressure: 'stress-vm-50' is
// not supported yet".
Status CheckSupported(const Variant& variant);

// Errors: kInvalidArgument where nothing is set, or a kind of a later version.
Result<Value> ValueFromProto(const v1::Value& message);
v1::VariantSettings ToProto(const Variant& variant);
// Nothing from the wire is trusted. A setting unknown here is passed over if the id proves it to be
// at its default, so that agents and controllers of neighbouring versions understand each other.
// Errors: kInvalidArgument names the setting, also for a variant_id that does not match.
Result<Variant> FromProto(const v1::VariantSettings& message);

}  // namespace pipeyard::settings
