#include "client/output/table.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "client/cli/terminal_text.h"
#include "client/output/text_width.h"

namespace softlookup::output {
namespace {

constexpr absl::string_view kGap = "  ";  // Between columns.

}  // namespace

void Table::AddRow(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = cli::TerminalText(cell);
  rows_.push_back(std::move(cells));
}

std::size_t Table::ColumnWidth(std::size_t column) const {
  std::size_t width = TextWidth(columns_[column].title);
  for (const auto& row : rows_) width = std::max(width, TextWidth(row[column]));
  return width;
}

void Table::RemoveColumn(std::size_t column) {
  const auto at = static_cast<std::ptrdiff_t>(column);
  columns_.erase(columns_.begin() + at);
  for (auto& row : rows_) row.erase(row.begin() + at);
}

std::size_t Table::HideColumns(std::size_t width) {
  std::size_t line_width = 0;
  for (std::size_t c = 0; c < columns_.size(); ++c) line_width += ColumnWidth(c) + kGap.size();
  std::size_t hidden = 0;
  while (line_width > width + kGap.size()) {
    const auto by_rank = [](const Column& a, const Column& b) { return a.rank < b.rank; };
    const auto last = std::max_element(columns_.begin(), columns_.end(), by_rank);
    if (last == columns_.end() || last->rank == 0) break;
    const auto column = static_cast<std::size_t>(last - columns_.begin());
    line_width -= ColumnWidth(column) + kGap.size();
    RemoveColumn(column);
    ++hidden;
  }
  return hidden;
}

void Table::Print(std::ostream* out, const std::string& indent) const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) widths.push_back(ColumnWidth(c));
  const auto print = [&](const auto& cell_at) {
    std::string line = indent;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const std::string& cell = cell_at(c);
      const std::string padding(widths[c] - TextWidth(cell), ' ');
      if (c > 0) absl::StrAppend(&line, kGap);
      line += columns_[c].align == Align::kLeft ? cell + padding : padding + cell;
    }
    absl::StripTrailingAsciiWhitespace(&line);
    *out << line << "\n";
  };
  print([&](std::size_t c) -> const std::string& { return columns_[c].title; });
  for (const auto& row : rows_) print([&](std::size_t c) -> const std::string& { return row[c]; });
}

std::string VectorText(absl::Span<const double> vector) {
  constexpr std::size_t kAllOf = 16;
  constexpr std::size_t kFirst = 8;
  constexpr std::size_t kLast = 2;
  const bool all = vector.size() <= kAllOf;
  std::string text = "[";
  for (std::size_t i = 0; i < vector.size(); ++i) {
    if (!all && i == kFirst) {
      text += " ...";
      i = vector.size() - kLast;
    }
    absl::StrAppendFormat(&text, "%s%.6g", i == 0 ? "" : " ", vector[i]);
  }
  text += "]";
  if (!all) absl::StrAppend(&text, " (", vector.size(), " components)");
  return text;
}

}  // namespace softlookup::output
