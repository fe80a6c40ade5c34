#include "client/tool/csv_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/cli/terminal_text.h"
#include "client/cpp/status_macros.h"
#include "client/tool/exit_code.h"

namespace softlookup::tool {
namespace {

constexpr std::string_view kSeparators = ", \t\v\f\r";
constexpr std::string_view kSpace = " \t\v\f\r";

// Removes the next field and the separator after it from `line` and returns the field. `line` must
// not begin with white space. Sets `more` to whether another field follows, which is empty if
// `line` ends in a comma.
std::string_view TakeField(std::string_view* line, bool* more) {
  const std::size_t end = std::min(line->find_first_of(kSeparators), line->size());
  const std::string_view field = line->substr(0, end);
  std::size_t next = std::min(line->find_first_not_of(kSpace, end), line->size());
  *more = next < line->size();
  if (*more && (*line)[next] == ',') {
    next = std::min(line->find_first_not_of(kSpace, next + 1), line->size());
  }
  line->remove_prefix(next);
  return field;
}

std::optional<double> ParseNumber(std::string_view field) {
  if (field.starts_with('+') && !field.starts_with("+-")) field.remove_prefix(1);
  double number;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), number);
  if (error == std::errc::result_out_of_range) {
    // The number is too large or too small for a double. from_chars does not tell which, but
    // SimpleAtod does: it gives infinity or zero.
    const absl::string_view text(field.data(), field.size());
    return absl::SimpleAtod(text, &number) ? std::optional(number) : std::nullopt;
  }
  if (error != std::errc() || end != field.data() + field.size()) return std::nullopt;
  return number;
}

// Says what is wrong with `field` of `line`, which is not a finite float32. `is_number` says
// whether it is a number at all, such as 1e39 or nan.
std::string Wrong(std::string_view field, std::string_view line, bool is_number) {
  const std::string hint = line.find(';') == std::string_view::npos
                               ? ""
                               : "; the line has semicolons: separate numbers with commas";
  if (field.empty()) return "empty" + hint;
  return absl::StrCat("\"", cli::Excerpt(field), "\" is not a ",
                      is_number ? "finite float32" : "number", hint);
}

class CsvReader : public RowReader {
 public:
  using RowReader::RowReader;

 private:
  absl::StatusOr<std::uint32_t> ReadRows(std::uint32_t rows_max,
                                         std::vector<float>* rows) override {
    std::uint32_t count = 0;
    while (count < rows_max) {
      CLIENT_ASSIGN_OR_RETURN(const bool read, source_.ReadLine(&line_));
      if (!read) break;
      std::string_view line = line_;
      line = line.substr(0, line.find('#'));
      line.remove_prefix(std::min(line.find_first_not_of(kSpace), line.size()));
      if (line.empty()) continue;
      if (std::exchange(may_be_header_, false) && IsHeader(line)) {
        Note(absl::StrCat("skipped line ", source_.line_number(),
                          ", a header: ", cli::Excerpt(line)));
        continue;
      }
      CLIENT_RETURN_IF_ERROR(ParseRow(line, rows));
      ++count;
    }
    return count;
  }

  // Whether `line` has a letter, and no field is a number or begins with a number and a semicolon.
  // A line of numbers with semicolons between them is no header: it is a mistake, and ParseRow()
  // reports it.
  static bool IsHeader(std::string_view line) {
    if (std::none_of(line.begin(), line.end(), absl::ascii_isalpha)) return false;
    bool more = true;
    while (more) {
      const std::string_view field = TakeField(&line, &more);
      if (ParseNumber(field.substr(0, field.find(';'))).has_value()) return false;
    }
    return true;
  }

  absl::Status ParseRow(const std::string_view whole_line, std::vector<float>* rows) {
    std::string_view line = whole_line;
    std::uint64_t column = 0;
    bool more = true;
    while (more) {
      ++column;
      const std::string field(TakeField(&line, &more));
      const auto number = ParseNumber(field);
      if (!number.has_value() || !std::isfinite(static_cast<float>(*number))) {
        return InputError(name(), absl::StrCat("line ", source_.line_number(), ", column ", column,
                                               ": ", Wrong(field, whole_line, number.has_value())));
      }
      if (columns_.count == 0 || column <= columns_.count)
        rows->push_back(static_cast<float>(*number));
    }
    return CheckColumns(absl::StrCat("line ", source_.line_number()), column);
  }

  std::string line_;
  bool may_be_header_ = true;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RowReader>> OpenCsv(ByteSource source, Columns columns) {
  return std::make_unique<CsvReader>(std::move(source), std::move(columns));
}

}  // namespace softlookup::tool
