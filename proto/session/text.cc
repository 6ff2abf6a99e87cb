#include "proto/session/text.h"

#include <vector>

#include "base/utf8.h"

namespace pipeyard::session {

bool IsUtf8(std::string_view text) { return FirstInvalidUtf8(text) == text.size(); }

std::string CleanText(std::string_view text, size_t most_bytes) {
  std::string clean;
  clean.reserve(text.size() < most_bytes ? text.size() : most_bytes);
  while (!text.empty()) {
    const size_t size = CharacterLength(text);
    if (clean.size() + (size == 0 ? 1 : size) > most_bytes) break;
    if (size == 0) {
      clean += '?';
      text.remove_prefix(1);
    } else {
      clean += text.substr(0, size);
      text.remove_prefix(size);
    }
  }
  return clean;
}

std::string FindFieldThatIsNotUtf8(const google::protobuf::Message& message) {
  using google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* const field : fields) {
    if (field->is_map()) continue;
    const bool is_string = field->type() == FieldDescriptor::TYPE_STRING;
    if (!is_string && field->type() != FieldDescriptor::TYPE_MESSAGE) continue;
    const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      if (is_string) {
        const std::string text = field->is_repeated()
                                     ? reflection.GetRepeatedString(message, field, i)
                                     : reflection.GetString(message, field);
        if (!IsUtf8(text)) return field->full_name();
        continue;
      }
      const std::string found = FindFieldThatIsNotUtf8(
          field->is_repeated() ? reflection.GetRepeatedMessage(message, field, i)
                               : reflection.GetMessage(message, field));
      if (!found.empty()) return found;
    }
  }
  return "";
}

}  // namespace pipeyard::session
