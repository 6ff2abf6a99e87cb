#include "controller/report/table.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/utf8.h"

namespace pipeyard::report {
namespace {

const char* CodeOf(Tone tone) {
  switch (tone) {
    case Tone::kGood:
      return "\x1b[32m";
    case Tone::kBad:
      return "\x1b[31m";
    case Tone::kUnsure:
      return "\x1b[33m";
    case Tone::kQuiet:
      return "\x1b[2m";
    case Tone::kPlain:
      break;
  }
  return "";
}

}  // namespace

size_t NumColumns(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return !IsContinuation(byte); }));
}

std::string Paint(std::string_view text, Tone tone, bool use_colour) {
  if (!use_colour || tone == Tone::kPlain || text.empty()) return std::string(text);
  return CodeOf(tone) + std::string(text) + "\x1b[0m";
}

Table::Table(std::vector<Column> columns, std::string_view indent)
    : columns_(std::move(columns)), indent_(indent) {}

void Table::Row(std::vector<TableCell> cells) {
  assert(cells.size() <= columns_.size());
  cells.resize(columns_.size(), TableCell(""));
  rows_.push_back(std::move(cells));
}

std::string Table::Render(bool use_colour) const {
  std::vector<size_t> widths(columns_.size(), 0);
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], NumColumns(row[i].text));
    }
  }
  std::vector<size_t> shown;
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (widths[i] == 0 && !rows_.empty()) continue;
    widths[i] = std::max(widths[i], NumColumns(columns_[i].header));
    shown.push_back(i);
  }

  std::string text;
  const auto write_line = [&](const auto& cell_of) {
    std::string line = indent_;
    std::string blanks;
    for (size_t i : shown) {
      const TableCell cell = cell_of(i);
      const std::string padding(widths[i] - NumColumns(cell.text), ' ');
      const std::string painted = Paint(cell.text, cell.tone, use_colour);
      if (columns_[i].align == Align::kRight) {
        line += blanks + padding + painted;
        blanks = "  ";
      } else {
        if (!cell.text.empty()) line += blanks + painted;
        blanks = (cell.text.empty() ? blanks : "") + padding + "  ";
      }
    }
    while (line.ends_with(' ')) line.pop_back();
    text += line + "\n";
  };
  write_line([&](size_t i) { return TableCell(columns_[i].header); });
  for (const auto& row : rows_) {
    write_line([&](size_t i) { return row[i]; });
  }
  return text;
}

}  // namespace pipeyard::report
