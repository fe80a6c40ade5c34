#include "tests/testing/metrics_text.h"

#include <cmath>
#include <limits>
#include <regex>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/status_macros.h"

namespace softlookup::testing {
namespace {

absl::Status Wrong(absl::string_view line, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(what, ": ", line));
}

using Labels = std::vector<std::pair<std::string, std::string>>;

struct Sample {
  std::string name;
  Labels labels;
  std::string key;  // In MetricsText::samples.
  double value = 0;
};

absl::StatusOr<Sample> ParseSample(const std::string& line) {
  static const std::regex kSample(R"re(([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+))re");
  // Within a value, a backslash stands before a backslash, a quote or an n, and nowhere else.
  static const std::regex kLabel(R"re(([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\["\\n])*)"(,|$))re");
  std::smatch match;
  if (!std::regex_match(line, match, kSample)) return Wrong(line, "not a sample");
  Sample sample{.name = match[1]};
  sample.key =
      match[2].length() == 0 ? sample.name : absl::StrCat(sample.name, "{", match[2].str(), "}");
  const std::string labels = match[2], number = match[3];
  for (auto begin = labels.begin(); begin != labels.end();) {
    if (!std::regex_search(begin, labels.end(), match, kLabel,
                           std::regex_constants::match_continuous)) {
      return Wrong(line, "not labels");
    }
    sample.labels.emplace_back(match[1], match[2]);
    begin = match[0].second;
  }
  if (number == "+Inf") {
    sample.value = std::numeric_limits<double>::infinity();
  } else if (!absl::SimpleAtod(number, &sample.value) || std::isnan(sample.value)) {
    return Wrong(line, "not a number");
  }
  return sample;
}

// One series of a histogram, as it is read.
struct Series {
  double bound = -std::numeric_limits<double>::infinity();
  double count = 0;  // Of the last bucket.
  bool has_sum = false, has_count = false;
};

// Reads line after line.
class Parser {
 public:
  absl::Status Take(const std::string& line) {
    if (absl::StartsWith(line, "# HELP ")) return TakeHelp(line);
    if (absl::StartsWith(line, "# TYPE ")) return TakeType(line);
    if (absl::StartsWith(line, "#")) return Wrong(line, "a comment");
    SOFTLOOKUP_ASSIGN_OR_RETURN(Sample sample, ParseSample(line));
    if (!text_.samples.emplace(sample.key, sample.value).second) return Wrong(line, "twice");
    return TakeSample(line, std::move(sample));
  }

  absl::StatusOr<MetricsText> Finish() && {
    SOFTLOOKUP_RETURN_IF_ERROR(EndFamily());
    return std::move(text_);
  }

 private:
  absl::Status TakeHelp(const std::string& line) {
    SOFTLOOKUP_RETURN_IF_ERROR(EndFamily());
    const std::vector<std::string> words = absl::StrSplit(line, absl::MaxSplits(' ', 3));
    if (words.size() != 4 || words[3].empty()) return Wrong(line, "not a help");
    name_ = words[2];
    if (!text_.families.emplace(name_, MetricsText::Family()).second) return Wrong(line, "twice");
    return absl::OkStatus();
  }

  absl::Status TakeType(const std::string& line) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    if (words.size() != 4 || words[2] != name_) return Wrong(line, "not the type of what comes");
    if (words[3] != "counter" && words[3] != "gauge" && words[3] != "histogram") {
      return Wrong(line, "not a type that we have");
    }
    text_.families[name_].type = words[3];
    return absl::OkStatus();
  }

  absl::Status TakeSample(const std::string& line, Sample sample) {
    MetricsText::Family& family = text_.families[name_];
    if (family.type.empty()) return Wrong(line, "has no type");
    absl::string_view part = sample.name;
    if (!absl::ConsumePrefix(&part, name_)) return Wrong(line, "stands with others");
    std::string le;
    Labels labels;
    for (auto& [name, value] : sample.labels) {
      if (name == "le") {
        le = value;
      } else {
        family.label_names.insert(name);
        labels.emplace_back(name, value);
      }
    }
    if (family.type != "histogram") {
      if (!part.empty() || !le.empty()) return Wrong(line, "stands with others");
      if (family.type == "counter" && sample.value < 0) return Wrong(line, "below 0");
      return absl::OkStatus();
    }
    Series& series = series_[absl::StrJoin(labels, ",", absl::PairFormatter("="))];
    if (part == "_bucket") return TakeBucket(line, le, sample.value, series);
    if (!le.empty()) return Wrong(line, "has a bound");
    if (part == "_sum") {
      series.has_sum = true;
    } else if (part == "_count") {
      series.has_count = true;
      series_counts_.emplace_back(&series, sample.value);
    } else {
      return Wrong(line, "stands with others");
    }
    return absl::OkStatus();
  }

  absl::Status TakeBucket(const std::string& line, const std::string& le, double count,
                          Series& series) {
    double bound = std::numeric_limits<double>::infinity();
    if (le != "+Inf" && !absl::SimpleAtod(le, &bound)) return Wrong(line, "has no bound");
    if (bound <= series.bound || count < series.count) return Wrong(line, "goes down");
    series.bound = bound;
    series.count = count;
    return absl::OkStatus();
  }

  absl::Status EndFamily() {
    if (name_.empty()) return absl::OkStatus();
    if (text_.families[name_].type.empty()) return Wrong(name_, "has no type");
    for (const auto& [series, count] : series_counts_) {
      if (count != series->count) return Wrong(name_, "its buckets do not add up");
    }
    for (const auto& [labels, series] : series_) {
      if (!std::isinf(series.bound) || series.bound < 0 || !series.has_sum || !series.has_count) {
        return Wrong(absl::StrCat(name_, "{", labels, "}"), "is no whole histogram");
      }
    }
    series_counts_.clear();
    series_.clear();
    return absl::OkStatus();
  }

  MetricsText text_;
  // Of the family that is read.
  std::string name_;
  std::map<std::string, Series> series_;
  std::vector<std::pair<const Series*, double>> series_counts_;
};

}  // namespace

double MetricsText::Value(const std::string& sample, double otherwise) const {
  const auto found = samples.find(sample);
  return found == samples.end() ? otherwise : found->second;
}

absl::StatusOr<MetricsText> ParseMetricsText(absl::string_view text) {
  if (!absl::ConsumeSuffix(&text, "\n")) return Wrong(text, "does not end with a line");
  Parser parser;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    SOFTLOOKUP_RETURN_IF_ERROR(parser.Take(std::string(line)));
  }
  return std::move(parser).Finish();
}

}  // namespace softlookup::testing
