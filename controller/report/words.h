// How single values are said to a person: changes, probabilities, verdicts, times, ids. Plain
// ASCII, but for what users and hosts wrote.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "controller/report/table.h"
#include "pipeyard/v1/control.pb.h"

namespace pipeyard::report {

// "+8.2%", "-0.3%", of a ratio b/a; "x12.5" from ten times on.
std::string RatioWords(double ratio);

// The change between two plain values: "-100.0%"; "0.0%" for 0 to 0; "n/a (+5 abs)" from 0 or
// across the sign; "new" and "gone" where one side has none. Never infinite.
std::string ChangeWords(std::optional<double> a, std::optional<double> b, std::string_view unit);

// The effect of a row in its own scale: "+8.2%", or for a shift "+5 B/s"; "inert" where nothing
// that differs can act.
std::string EffectWords(const v1::DiffRow& row);
// "[+6.1%, +10.4%]", "[-1, +3] B/s", or "[unbounded]" where the samples are too few for it.
std::string IntervalWords(const v1::DiffRow& row);

// "0.0312", "<0.0001", "-" where there is none.
std::string ProbabilityWords(const v1::DiffRow& row);

// "10+9" samples of the sides, "8 blocks" where they are paired, "6+6 in 1+1 boots" over boots.
std::string CountWords(const v1::DiffRow& row);

// "improved: higher throughput", "unchanged", "inconclusive: noisy", "missing in A",
// "inert: engine.page_cache".
std::string BareVerdictWords(const v1::DiffRow& row);
// "4.3%", the smallest change that such samples would probably show; empty where that is no matter.
std::string DetectsWords(const v1::DiffRow& row);
// "~12 more blocks", "3 more boots a side", "over 1,000 more blocks"; empty where none would help.
std::string NeedsWords(const v1::DiffRow& row);
// All three: "inconclusive: noisy (detects 4.3%, needs ~12 more blocks)".
std::string VerdictWords(const v1::DiffRow& row);
// "modelled (remote_access=120ns)" of what DiffRow.modelled says, for units of time and rates;
// empty for counts, which an emulated topology does not invent, and where nothing is modelled.
std::string ModelledWords(std::string_view modelled, std::string_view unit);
Tone VerdictTone(const v1::DiffRow& row);

// "higher is better", "lower is better", "no direction is better".
std::string_view DirectionWords(v1::Direction better);

// "3.5%" of a fraction.
std::string PercentWords(double fraction);

// "2026-01-31 12:00:00Z"; "-" for 0.
std::string UtcWords(int64_t utc_ns);

// "1h 02m", "12.3 s", "850 ms" of a duration.
std::string SpanWords(int64_t ns);

// "3 trials", "1 trial".
std::string Plural(uint64_t count, std::string_view noun);

// The first 13 characters of an id, enough to name a run.
std::string ShortId(std::string_view id);

// Texts of users and hosts, which must move neither the cursor nor a column. Latin, Greek and
// Cyrillic letters, their punctuation and common symbols stay, for each takes one column. Every
// other character (control, wide, combining, right-to-left) and every byte that is no UTF-8 becomes
// '?'.
std::string Printable(std::string_view text);

}  // namespace pipeyard::report
