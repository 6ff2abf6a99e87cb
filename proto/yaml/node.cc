#include "proto/yaml/node.h"

#include <fmt/format.h>

namespace pipeyard::yaml {
namespace {

void AppendJsonString(std::string_view text, std::string& out) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  out += '"';
}

void AppendJson(const Node& node, std::string& out) {
  if (node.IsList()) {
    out += '[';
    for (const Node& item : node.items) {
      if (out.back() != '[') out += ',';
      AppendJson(item, out);
    }
    out += ']';
  } else if (node.IsMap()) {
    out += '{';
    for (const Entry& entry : node.entries) {
      if (out.back() != '{') out += ',';
      AppendJsonString(entry.key.text, out);
      out += ':';
      AppendJson(entry.value, out);
    }
    out += '}';
  } else {
    AppendJsonString(node.text, out);
  }
}

}  // namespace

std::string Describe(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull:
      return "nothing";
    case Node::Kind::kScalar:
      return fmt::format("'{}'", node.text);
    case Node::Kind::kList:
      return "a list";
    case Node::Kind::kMap:
      return "a map";
  }
  return "nothing";
}

std::string ToJson(const Node& node) {
  std::string out;
  AppendJson(node, out);
  return out;
}

}  // namespace pipeyard::yaml
