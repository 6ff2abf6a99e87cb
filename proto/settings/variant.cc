#include "proto/settings/variant.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>

#include "proto/settings/command_parameters.h"
#include "proto/settings/definition.h"
#include "proto/settings/parse.h"
#include "proto/settings/sha256.h"

namespace pipeyard::settings {
namespace {

constexpr size_t kIdDigits = 16;

template <typename T>
const T& Get(const Variant& variant, std::string_view name) {
  const auto found = variant.values.find(std::string(name));
  assert(found != variant.values.end() && std::holds_alternative<T>(found->second));
  return std::get<T>(found->second);
}

}  // namespace

int64_t Variant::Integer(std::string_view name) const { return Get<int64_t>(*this, name); }
double Variant::Number(std::string_view name) const { return Get<double>(*this, name); }
bool Variant::Flag(std::string_view name) const { return Get<bool>(*this, name); }
const std::string& Variant::Text(std::string_view name) const {
  return Get<std::string>(*this, name);
}

const std::string& Variant::Json(std::string_view name) const {
  return Get<JsonText>(*this, name).text;
}

Result<Variant> MakeVariant(std::string workload, std::string target,
                            const std::map<std::string, Value>& given) {
  const WorkloadDefinition* const found = FindWorkload(workload);
  if (found == nullptr) return InvalidArgument(fmt::format("unknown workload '{}'", workload));
  if (std::find(found->targets.begin(), found->targets.end(), target) == found->targets.end()) {
    return InvalidArgument(fmt::format("workload {} does not drive target '{}'; {} was meant",
                                       workload, target, fmt::join(found->targets, " or ")));
  }
  for (const auto& [name, value] : given) {
    const Definition* const definition = FindDefinition(workload, name);
    if (definition == nullptr) {
      return InvalidArgument(fmt::format("unknown setting '{}' of workload {}", name, workload));
    }
    if (Status checked = CheckValue(*definition, value); !checked.ok()) {
      return checked.WithContext(name);
    }
  }
  Variant variant{.workload = std::move(workload),
                  .workload_version = found->version,
                  .target = std::move(target),
                  .values = {}};
  for (const Definition& definition : Definitions()) {
    if (FindDefinition(variant.workload, definition.name) != &definition) continue;
    if (!AppliesTo(definition, variant.target)) continue;
    const auto value = given.find(std::string(definition.name));
    variant.values.emplace_hint(variant.values.end(), definition.name,
                                value == given.end() ? definition.default_value : value->second);
  }
  if (variant.workload == "command") {
    // Parameters of the command itself, which the catalog does not know.
    for (const auto& [name, value] : given) {
      if (IsCommandParameterName(name)) variant.values.emplace(name, value);
    }
    if (variant.Text("command").empty()) {
      return InvalidArgument("command is missing; the name of a command of the hosts was meant");
    }
  }
  return variant;
}

Nanos CommandedTime(const Variant& variant) {
  Nanos total(0);
  for (const std::string_view name : {"duration", "warmup"}) {
    const auto found = variant.values.find(std::string(name));
    if (found == variant.values.end()) continue;
    // A command may have parameters of these names; their meaning is its own.
    if (const int64_t* nanos = std::get_if<int64_t>(&found->second)) total += Nanos(*nanos);
  }
  return total;
}

std::string CanonicalText(const Variant& variant) {
  std::vector<std::string> lines = {
      fmt::format("workload={}\n", variant.workload),
      fmt::format("workload_version={}\n", variant.workload_version),
      fmt::format("target={}\n", variant.target),
  };
  for (const auto& [name, value] : variant.values) {
    const Definition* const definition = FindDefinition(variant.workload, name);
    if (definition != nullptr && value == definition->default_value) continue;
    lines.push_back(fmt::format("{}={}\n", name, CanonicalText(value)));
  }
  std::sort(lines.begin(), lines.end());
  return fmt::format("{}", fmt::join(lines, ""));
}

std::string VariantId(const Variant& variant) {
  return Sha256Hex(CanonicalText(variant)).substr(0, kIdDigits);
}

std::string VariantText(const Variant& variant, const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    std::string shown;
    if (name == "target") {
      shown = variant.target;
    } else if (const auto value = variant.values.find(name); value != variant.values.end()) {
      shown = DisplayValue(variant.workload, name, value->second);
    } else {
      continue;
    }
    if (!text.empty()) text += ';';
    text += fmt::format("{}={}", name, shown);
  }
  return text;
}

std::string DisplayValue(std::string_view workload, std::string_view name, const Value& value) {
  const Definition* const definition = FindDefinition(workload, name);
  return definition == nullptr ? CanonicalText(value) : FormatValue(*definition, value);
}

Status CheckSupported(const Variant& variant) {
  const WorkloadDefinition* const workload = FindWorkload(variant.workload);
  if (workload == nullptr || !workload->is_supported) {
    return Unimplemented(fmt::format("workload '{}' is not supported yet", variant.workload));
  }
  for (const auto& [name, value] : variant.values) {
    const Definition* const definition = FindDefinition(variant.workload, name);
    if (definition == nullptr) return Unimplemented(fmt::format("{} is not supported yet", name));
    if (const auto why = WhyUnsupported(*definition, value)) {
      return Unimplemented(fmt::format("{}: {}", name, *why));
    }
  }
  return Status::Ok();
}

}  // namespace pipeyard::settings
