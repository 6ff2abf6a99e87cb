// Variants on the wire. Identity proves completeness: settings that this version does not know, and
// those that the sender did not know, are at their defaults exactly when the id that the sender
// computed equals ours.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "proto/settings/definition.h"
#include "proto/settings/parse.h"
#include "proto/settings/variant.h"

namespace pipeyard::settings {
namespace {

// No variant of the catalog comes near; bounds the work that a peer can ask for.
constexpr int kMaxSettings = 1000;
constexpr size_t kMaxShown = 5;

v1::Value ValueToProto(const Value& value) {
  v1::Value message;
  if (const bool* flag = std::get_if<bool>(&value)) message.set_flag(*flag);
  if (const int64_t* integer = std::get_if<int64_t>(&value)) message.set_integer(*integer);
  if (const double* number = std::get_if<double>(&value)) message.set_number(*number);
  if (const std::string* text = std::get_if<std::string>(&value)) message.set_text(*text);
  if (const JsonText* json = std::get_if<JsonText>(&value)) message.set_json(json->text);
  return message;
}

}  // namespace

Result<Value> ValueFromProto(const v1::Value& message) {
  switch (message.kind_case()) {
    case v1::Value::kFlag:
      return Value(message.flag());
    case v1::Value::kInteger:
      return Value(static_cast<int64_t>(message.integer()));
    case v1::Value::kNumber:
      return Value(message.number());
    case v1::Value::kText:
      return Value(message.text());
    case v1::Value::kJson:
      return Value(JsonText{message.json()});
    case v1::Value::KIND_NOT_SET:
      break;
  }
  return InvalidArgument("has no value, or one of an unknown kind");
}

v1::VariantSettings ToProto(const Variant& variant) {
  v1::VariantSettings message;
  message.set_workload(variant.workload);
  message.set_workload_version(static_cast<uint32_t>(variant.workload_version));
  message.set_target(variant.target);
  for (const auto& [name, value] : variant.values) {
    v1::Setting* const setting = message.add_settings();
    setting->set_name(name);
    *setting->mutable_value() = ValueToProto(value);
  }
  message.set_variant_id(VariantId(variant));
  return message;
}

Result<Variant> FromProto(const v1::VariantSettings& message) {
  const WorkloadDefinition* const workload = FindWorkload(message.workload());
  if (workload == nullptr) {
    return InvalidArgument(fmt::format("unknown workload '{:.60}'", message.workload()));
  }
  if (message.workload_version() != workload->version) {
    return InvalidArgument(fmt::format("workload {} version {} was asked for; this program has {}",
                                       workload->name, message.workload_version(),
                                       workload->version));
  }
  if (message.settings_size() > kMaxSettings) {
    return InvalidArgument(fmt::format("{} settings are too many", message.settings_size()));
  }
  std::map<std::string, Value> given;
  std::vector<std::string> unknown;
  for (const v1::Setting& setting : message.settings()) {
    if (FindDefinition(workload->name, setting.name()) == nullptr) {
      if (unknown.size() < kMaxShown) unknown.push_back(fmt::format("'{:.60}'", setting.name()));
      continue;
    }
    Result<Value> value = ValueFromProto(setting.value());
    if (!value.ok()) return value.status().WithContext(setting.name());
    if (!given.emplace(setting.name(), *std::move(value)).second) {
      return InvalidArgument(fmt::format("setting '{}' is given twice", setting.name()));
    }
  }
  PIPEYARD_ASSIGN_OR_RETURN(Variant variant,
                            MakeVariant(message.workload(), message.target(), given));
  const std::string id = VariantId(variant);
  if (id != message.variant_id()) {
    std::string why = fmt::format("variant_id '{:.60}' is not that of its settings, {}",
                                  message.variant_id(), id);
    if (!unknown.empty()) {
      why += fmt::format("; unknown setting {}", fmt::join(unknown, ", "));
    }
    return InvalidArgument(why);
  }
  return variant;
}

}  // namespace pipeyard::settings
