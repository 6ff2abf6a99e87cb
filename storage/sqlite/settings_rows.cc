#include "storage/sqlite/settings_rows.h"

#include <fmt/format.h>

#include <map>
#include <string_view>

#include "storage/sqlite/content_hash.h"

namespace pipeyard::storage {
namespace {

constexpr const char* kInsertValue =
    "INSERT INTO setting_values (settings, name, kind, value) VALUES (?1, ?2, ?3, ?4)";

// On one line, so that no value can look like another setting.
std::string Escape(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\') {
      escaped += "\\\\";
    } else if (c == '\n') {
      escaped += "\\n";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

// "kind:value"; empty where there is no value.
std::string ValueText(const v1::Value& value) {
  switch (value.kind_case()) {
    case v1::Value::kFlag:
      return fmt::format("flag:{}", value.flag());
    case v1::Value::kInteger:
      return fmt::format("integer:{}", value.integer());
    case v1::Value::kNumber:
      return fmt::format("number:{}", value.number());
    case v1::Value::kText:
      return fmt::format("text:{}", Escape(value.text()));
    case v1::Value::kJson:
      return fmt::format("json:{}", Escape(value.json()));
    case v1::Value::KIND_NOT_SET:
      break;
  }
  return "";
}

Status InsertValue(Connection& connection, int64_t settings, const v1::Setting& setting) {
  const v1::Value& value = setting.value();
  switch (value.kind_case()) {
    case v1::Value::kFlag:
      return RunSql(connection, kInsertValue, settings, setting.name(), "flag", value.flag());
    case v1::Value::kInteger:
      return RunSql(connection, kInsertValue, settings, setting.name(), "integer", value.integer());
    case v1::Value::kNumber:
      return RunSql(connection, kInsertValue, settings, setting.name(), "number", value.number());
    case v1::Value::kText:
      return RunSql(connection, kInsertValue, settings, setting.name(), "text", value.text());
    case v1::Value::kJson:
      return RunSql(connection, kInsertValue, settings, setting.name(), "json", value.json());
    case v1::Value::KIND_NOT_SET:
      break;
  }
  return InvalidArgument(fmt::format("setting {} has no value", setting.name()));
}

Status ReadValue(const Query& query, v1::Value& value) {
  const std::string kind = query.Text(1);
  if (kind == "flag") {
    value.set_flag(query.Int(2) != 0);
  } else if (kind == "integer") {
    value.set_integer(query.Int(2));
  } else if (kind == "number") {
    value.set_number(query.Real(2));
  } else if (kind == "text") {
    value.set_text(query.Text(2));
  } else if (kind == "json") {
    value.set_json(query.Text(2));
  } else {
    return DataLoss(fmt::format("setting {} is of unknown kind '{}'", query.Text(0), kind));
  }
  return Status::Ok();
}

}  // namespace

Result<std::string> SettingsText(const v1::VariantSettings& settings) {
  std::map<std::string_view, std::string> lines;
  for (const v1::Setting& setting : settings.settings()) {
    std::string text = ValueText(setting.value());
    if (text.empty())
      return InvalidArgument(fmt::format("setting {} has no value", setting.name()));
    if (!lines.emplace(setting.name(), std::move(text)).second) {
      return InvalidArgument(fmt::format("setting {} is given twice", setting.name()));
    }
  }
  std::string text =
      fmt::format("workload={}\nworkload_version={}\ntarget={}\n", settings.workload(),
                  settings.workload_version(), settings.target());
  for (const auto& [name, value] : lines) text += fmt::format("{}={}\n", name, value);
  return text;
}

Result<int64_t> InternVariant(Connection& connection, const std::string& variant_id) {
  Query find(connection, "SELECT variant FROM variants WHERE variant_id = ?1", variant_id);
  if (find.Next()) return find.Int(0);
  PIPEYARD_RETURN_IF_ERROR(find.status());
  PIPEYARD_RETURN_IF_ERROR(
      RunSql(connection, "INSERT INTO variants (variant_id) VALUES (?1)", variant_id));
  return connection.last_insert_rowid();
}

Result<int64_t> InternSettings(Connection& connection, const v1::VariantSettings& settings) {
  PIPEYARD_ASSIGN_OR_RETURN(const std::string text, SettingsText(settings));
  const std::string hash = ContentHash(text);
  Query find(connection, "SELECT settings FROM settings WHERE sha256 = ?1", Blob{hash});
  if (find.Next()) return find.Int(0);
  PIPEYARD_RETURN_IF_ERROR(find.status());
  PIPEYARD_RETURN_IF_ERROR(RunSql(
      connection,
      "INSERT INTO settings (sha256, workload, workload_version, target, text) "
      "VALUES (?1, ?2, ?3, ?4, ?5)",
      Blob{hash}, settings.workload(), settings.workload_version(), settings.target(), text));
  const int64_t row = connection.last_insert_rowid();
  for (const v1::Setting& setting : settings.settings()) {
    PIPEYARD_RETURN_IF_ERROR(InsertValue(connection, row, setting));
  }
  return row;
}

Result<v1::VariantSettings> LoadSettings(Connection& connection, int64_t settings) {
  v1::VariantSettings message;
  Query head(connection,
             "SELECT workload, workload_version, target FROM settings WHERE settings = ?1",
             settings);
  if (!head.Next()) {
    PIPEYARD_RETURN_IF_ERROR(head.status());
    return DataLoss(fmt::format("settings {} are missing", settings));
  }
  message.set_workload(head.Text(0));
  message.set_workload_version(static_cast<uint32_t>(head.Int(1)));
  message.set_target(head.Text(2));
  Query values(connection,
               "SELECT name, kind, value FROM setting_values WHERE settings = ?1 ORDER BY name",
               settings);
  while (values.Next()) {
    v1::Setting& setting = *message.add_settings();
    setting.set_name(values.Text(0));
    PIPEYARD_RETURN_IF_ERROR(ReadValue(values, *setting.mutable_value()));
  }
  PIPEYARD_RETURN_IF_ERROR(values.status());
  return message;
}

}  // namespace pipeyard::storage
