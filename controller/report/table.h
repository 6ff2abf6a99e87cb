// Table: rows of text in columns whose widths follow from what they hold.
//
// Not for markup or machine formats (json.h). A cell's colour never takes part in its width and is
// written only when asked for. Texts of others go through Printable() (words.h) first.
//
// Thread safety: thread-compatible.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pipeyard::report {

enum class Align { kLeft, kRight };

// What a colour means, not what it looks like.
enum class Tone { kPlain, kGood, kBad, kUnsure, kQuiet };

struct TableCell {
  TableCell(std::string words, Tone what = Tone::kPlain)  // NOLINT: implicit by intent
      : text(std::move(words)), tone(what) {}
  TableCell(const char* words) : text(words) {}  // NOLINT: implicit by intent

  std::string text;
  Tone tone = Tone::kPlain;
};

struct Column {
  std::string header;
  Align align = Align::kLeft;
};

class Table {
 public:
  explicit Table(std::vector<Column> columns, std::string_view indent = "");

  // Missing cells are empty; more cells than columns is a mistake of ours.
  void Row(std::vector<TableCell> cells);
  bool empty() const { return rows_.empty(); }

  // Header line, then the rows, two blanks between columns, no blanks at line ends. Columns that
  // are empty throughout (header apart) are left out.
  std::string Render(bool use_colour) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<TableCell>> rows_;
  std::string indent_;
};

// Columns that `text` takes on a terminal, where each of its characters takes one.
size_t NumColumns(std::string_view text);

// `text` between the escape codes of the tone; unchanged without colour or for kPlain.
std::string Paint(std::string_view text, Tone tone, bool use_colour);

}  // namespace pipeyard::report
