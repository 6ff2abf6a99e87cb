// The only file here that includes yaml-cpp. Its exceptions end here.
#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>

#include "base/utf8.h"
#include "proto/yaml/node.h"
#include "proto/yaml/problems.h"

namespace pipeyard::yaml {
namespace {

Place PlaceOf(const YAML::Mark& mark) {
  if (mark.is_null()) return {1, 1};
  return {static_cast<uint32_t>(mark.line) + 1, static_cast<uint32_t>(mark.column) + 1};
}

Place PlaceOfOffset(std::string_view text, size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const auto lines = static_cast<uint32_t>(std::count(before.begin(), before.end(), '\n'));
  const size_t line_start = before.rfind('\n');
  const size_t column = line_start == std::string_view::npos ? offset : offset - line_start - 1;
  return {lines + 1, static_cast<uint32_t>(column) + 1};
}

// Ends the parse where a problem was already reported.
struct Stop {};

void StopAt(Problems& problems, Place place, std::string what, std::string meant) {
  problems.Error(place, std::move(what), std::move(meant));
  throw Stop();
}

// Builds the tree from parse events; never recurses.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(Problems& problems, const FileKind& kind) : problems_(problems), kind_(kind) {}

  bool has_root() const { return has_root_; }
  // Of the innermost map or list that is not closed; 1 where there is none.
  uint32_t open_line() const { return open_.empty() ? 1 : open_.back().node.place.line; }
  Node TakeRoot() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) {
      StopAt(problems_, PlaceOf(mark), "a second document begins here",
             fmt::format("one {} a file", kind_.name));
    }
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    CheckPlain(mark, "?", anchor);
    Node node;
    node.place = PlaceOf(mark);
    Add(std::move(node));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    StopAt(problems_, PlaceOf(mark), "aliases (*name) are not part of the grammar",
           "the value itself");
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    CheckPlain(mark, tag, anchor);
    Node node;
    node.kind = Node::Kind::kScalar;
    node.place = PlaceOf(mark);
    node.text = value;
    node.is_quoted = tag == "!";
    Add(std::move(node));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, Node::Kind::kList);
  }
  void OnSequenceEnd() override { Close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, Node::Kind::kMap);
  }
  void OnMapEnd() override { Close(); }

 private:
  struct OpenNode {
    Node node;
    Node key;
    bool has_key = false;
  };

  void CheckPlain(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) {
      StopAt(problems_, PlaceOf(mark), "anchors (&name) are not part of the grammar",
             "the value without it");
    }
    if (!tag.empty() && tag != "?" && tag != "!") {
      StopAt(problems_, PlaceOf(mark), "tags (!name) are not part of the grammar",
             "the value without it");
    }
  }

  void Open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            Node::Kind kind) {
    CheckPlain(mark, tag, anchor);
    if (open_.size() >= static_cast<size_t>(kMaxDepth)) {
      StopAt(problems_, PlaceOf(mark), fmt::format("more than {} levels are nested", kMaxDepth),
             "fewer; no file of ours needs more than 5");
    }
    OpenNode opened;
    opened.node.kind = kind;
    opened.node.place = PlaceOf(mark);
    open_.push_back(std::move(opened));
  }

  void Close() {
    Node node = std::move(open_.back().node);
    open_.pop_back();
    Add(std::move(node));
  }

  void Add(Node node) {
    if (open_.empty()) {
      root_ = std::move(node);
      has_root_ = true;
      return;
    }
    OpenNode& parent = open_.back();
    if (parent.node.IsList()) {
      parent.node.items.push_back(std::move(node));
      return;
    }
    if (!parent.has_key) {
      if (!node.IsScalar()) {
        StopAt(problems_, node.place, "a key is " + Describe(node),
               "a word; quote it if it is one");
      }
      parent.key = std::move(node);
      parent.has_key = true;
      return;
    }
    parent.node.entries.push_back({std::move(parent.key), std::move(node)});
    parent.has_key = false;
  }

  Problems& problems_;
  const FileKind& kind_;
  int documents_ = 0;
  std::vector<OpenNode> open_;
  Node root_;
  bool has_root_ = false;
};

// What a terse message of the parser means to the author of a file. `open_line` is that of the
// innermost open map or list.
std::string Meant(const std::string& message, uint32_t open_line) {
  const auto says = [&](std::string_view part) { return message.find(part) != std::string::npos; };
  if (says("end of map flow"))
    return fmt::format("a '}}' that closes what line {} opens", open_line);
  if (says("end of sequence flow")) {
    return fmt::format("a ']' that closes what line {} opens", open_line);
  }
  if (says("illegal flow end")) return "the bracket that matches the last opened one";
  if (says("illegal map value")) return "quotes around a value that holds ': '";
  if (says("end of map not found")) return "keys of one map indented alike";
  return {};
}

// YAML forbids tabs where it counts blanks; the parser blames what stands behind them.
bool IsIndentedWithTab(std::string_view text, int line) {
  for (; line > 0 && !text.empty(); --line) {
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  }
  const std::string_view indent = text.substr(0, text.find_first_not_of(" \t"));
  return indent.find('\t') != std::string_view::npos;
}

// False where the text cannot be a file of ours; a problem says why. Keeps from the parser what is
// not text or nested past all reason.
bool CheckText(std::string_view text, Problems& problems) {
  if (text.size() > kMaxBytes) {
    problems.Error({1, 1}, fmt::format("the file is {} bytes long", text.size()),
                   fmt::format("at most {} bytes", kMaxBytes));
    return false;
  }
  if (const size_t at = FirstInvalidUtf8(text); at != text.size()) {
    problems.Error(
        PlaceOfOffset(text, at),
        fmt::format("byte 0x{:02x} is no valid UTF-8", static_cast<unsigned char>(text[at])),
        "a text file in UTF-8");
    return false;
  }
  int depth = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n' && c != '\r' && c != '\t') || byte == 0x7F) {
      problems.Error(PlaceOfOffset(text, at), fmt::format("byte 0x{:02x} is no text", byte),
                     "a text file in UTF-8");
      return false;
    }
    if (c == '[' || c == '{') ++depth;
    if ((c == ']' || c == '}') && depth > 0) --depth;
    // Brackets in comments and quotes count too; nobody writes this many.
    if (depth > 4 * kMaxDepth) {
      problems.Error(PlaceOfOffset(text, at),
                     fmt::format("more than {} levels are nested", kMaxDepth),
                     "fewer; no file of ours needs more than 5");
      return false;
    }
  }
  return true;
}

}  // namespace

std::optional<Node> LoadYaml(std::string_view text, Problems& problems, const FileKind& kind) {
  if (!CheckText(text, problems)) return std::nullopt;
  TreeBuilder builder(problems, kind);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
    if (builder.has_root()) return builder.TakeRoot();
    problems.Error({1, 1}, "the file holds nothing", std::string(kind.meant));
  } catch (const Stop&) {
  } catch (const YAML::Exception& e) {
    problems.Error(PlaceOf(e.mark), "broken YAML: " + e.msg,
                   IsIndentedWithTab(text, e.mark.line) ? "indent with blanks, YAML knows no tabs"
                                                        : Meant(e.msg, builder.open_line()));
  } catch (const std::exception& e) {
    problems.Error({1, 1}, fmt::format("broken YAML: {}", e.what()));
  }
  return std::nullopt;
}

}  // namespace pipeyard::yaml
