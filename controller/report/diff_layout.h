// What the tables of one comparison have in common: which columns would say the same everywhere,
// and what the heading therefore says once.
//
// Not for anything outside the text of a comparison.
// Thread safety: values. Ownership: rows are borrowed from the DiffResponse, which outlives them.
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "controller/report/table.h"
#include "controller/report/words.h"
#include "pipeyard/v1/control.pb.h"

namespace pipeyard::report {

// What the tables of one diff have in common.
struct Layout {
  explicit Layout(const v1::DiffResponse& diff) {
    for (const v1::DiffRow& row : diff.rows()) {
      hosts.insert(row.host());
      b_labels.insert(row.b_label());
      // A row without p was not tested, whatever test it was meant for.
      is_paired |= row.has_p() && row.test() == "signed-rank";
      is_over_boots |= row.has_p() && row.test().ends_with("/boots");
      is_two_sample |= row.has_p() && row.test() == "mann-whitney";
      is_emulated |= row.emulated();
      is_open |= !DetectsWords(row).empty() || !NeedsWords(row).empty();
      thresholds.insert(row.min_change());
      const std::vector<std::string> settings = Settings(row.variant());
      if (&row == &diff.rows(0)) {
        common = settings;
      } else {
        std::erase_if(common, [&](const std::string& setting) {
          return std::find(settings.begin(), settings.end(), setting) == settings.end();
        });
      }
    }
  }

  // "writers=1" and "readers=5" of "writers=1;readers=5"; a pair of variants is one piece.
  static std::vector<std::string> Settings(const std::string& variant) {
    std::vector<std::string> settings;
    if (variant.find(" vs ") != std::string::npos) return {variant};
    for (size_t begin = 0; begin < variant.size();) {
      const size_t end = std::min(variant.find(';', begin), variant.size());
      settings.push_back(variant.substr(begin, end - begin));
      begin = end + 1;
    }
    return settings;
  }

  static std::string Join(const std::vector<std::string>& settings) {
    std::string text;
    for (const std::string& setting : settings) text += (text.empty() ? "" : ";") + setting;
    return text;
  }

  std::string CommonWords() const { return Join(common); }

  // What of the variant is not said once for all by the heading.
  std::string ConfigOf(const std::string& variant) const {
    std::vector<std::string> settings = Settings(variant);
    std::erase_if(settings, [&](const std::string& setting) {
      return std::find(common.begin(), common.end(), setting) != common.end();
    });
    return Join(settings);
  }

  // Columns that would say the same in every row stay empty, and the table leaves them out.
  std::vector<TableCell> Where(const v1::DiffRow& row) const {
    return {hosts.size() > 1 ? Printable(row.host()) : "", Printable(ConfigOf(row.variant())),
            b_labels.size() > 1 ? Printable(row.b_label()) : ""};
  }
  static std::vector<Column> WhereColumns() { return {{"host"}, {"config"}, {"B"}}; }

  std::set<std::string> hosts;
  std::set<std::string> b_labels;
  std::set<double> thresholds;
  bool is_paired = false;
  bool is_over_boots = false;
  bool is_two_sample = false;
  bool is_emulated = false;
  bool is_open = false;
  // Settings that every row has; the heading says them.
  std::vector<std::string> common;
};

}  // namespace pipeyard::report
