#include "controller/spec/labels.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"

namespace pipeyard::spec {
namespace {

Status CheckText(std::string_view text, size_t max_bytes) {
  if (text.size() > max_bytes) {
    return InvalidArgument(
        fmt::format("{} bytes are too long; at most {} bytes", text.size(), max_bytes));
  }
  if (FirstInvalidUtf8(text) != text.size()) return InvalidArgument("is no UTF-8");
  if (HoldsControl(text)) {
    return InvalidArgument("holds a line break or another control character");
  }
  return Status::Ok();
}

}  // namespace

Status CheckLabel(std::string_view key, std::string_view value) {
  if (key.empty()) return InvalidArgument("a label's key is empty; KEY=VALUE was meant");
  const std::string shown(FirstBytes(key, kMaxLabelKeyBytes));
  if (const Status status = CheckText(key, kMaxLabelKeyBytes); !status.ok()) {
    return status.WithContext(fmt::format("the label key '{}'", shown));
  }
  if (key.find('=') != std::string_view::npos) {
    return InvalidArgument(fmt::format("the label key '{}' holds a '='", shown));
  }
  if (const Status status = CheckText(value, kMaxLabelValueBytes); !status.ok()) {
    return status.WithContext(fmt::format("the value of label '{}'", shown));
  }
  return Status::Ok();
}

Result<Labels> ParseLabels(const std::vector<std::string>& texts) {
  if (texts.size() > kMaxLabels) {
    return InvalidArgument(
        fmt::format("{} labels are too many; at most {}", texts.size(), kMaxLabels));
  }
  Labels labels;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) {
      return InvalidArgument(fmt::format("'{}' is no label; KEY=VALUE was meant",
                                         FirstBytes(text, kMaxLabelKeyBytes)));
    }
    const std::string key = text.substr(0, equals);
    const std::string value = text.substr(equals + 1);
    PIPEYARD_RETURN_IF_ERROR(CheckLabel(key, value));
    if (!labels.emplace(key, value).second) {
      return InvalidArgument(fmt::format("the label '{}' is given twice", key));
    }
  }
  return labels;
}

Status CheckNote(std::string_view note) {
  std::string one_line(note);
  std::replace_if(
      one_line.begin(), one_line.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
  const Status status = CheckText(one_line, kMaxNoteBytes);
  return status.ok() ? status : status.WithContext("the note");
}

}  // namespace pipeyard::spec
