#include "proto/session/text.h"

#include <vector>

namespace pipeyard::session {
namespace {

// Bytes of the well-formed character at the beginning of `text`, 0 where there is none.
size_t CharacterSize(std::string_view text) {
  const auto byte = [&text](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < size) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // RFC 3629, section 4: the second byte's range is narrower after these.
  if (first == 0xe0 && byte(1) < 0xa0) return 0;
  if (first == 0xed && byte(1) > 0x9f) return 0;
  if (first == 0xf0 && byte(1) < 0x90) return 0;
  if (first == 0xf4 && byte(1) > 0x8f) return 0;
  return size;
}

}  // namespace

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t size = CharacterSize(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

std::string CleanText(std::string_view text, size_t most_bytes) {
  std::string clean;
  clean.reserve(text.size() < most_bytes ? text.size() : most_bytes);
  while (!text.empty()) {
    const size_t size = CharacterSize(text);
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
