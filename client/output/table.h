#ifndef SOFTLOOKUP_CLIENT_OUTPUT_TABLE_H_
#define SOFTLOOKUP_CLIENT_OUTPUT_TABLE_H_

#include <ostream>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace softlookup::output {

enum class Align { kLeft, kRight };

// A table of text. A column is as wide as its title or its widest cell, whichever is wider, as
// TextWidth() counts. Cells pass through cli::TerminalText(), but titles do not.
class Table {
 public:
  struct Column {
    std::string title;
    Align align = Align::kLeft;
    // HideColumns() hides columns of the highest rank first, and never hides rank 0.
    int rank = 0;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // There must be one cell per column.
  void AddRow(std::vector<std::string> cells);

  // Hides columns of the table until a line, without its indent, takes at most `width` columns of a
  // terminal. Stops early if all columns left have rank 0. Returns how many it hid.
  std::size_t HideColumns(std::size_t width);

  void Print(std::ostream* out, const std::string& indent = "") const;

 private:
  std::size_t ColumnWidth(std::size_t column) const;
  void RemoveColumn(std::size_t column);

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// Returns text such as "[0.5 -1 2]", with six significant digits. More than 16 components are
// shortened to the first 8, the last 2 and the number of components.
std::string VectorText(absl::Span<const double> vector);

}  // namespace softlookup::output

#endif  // SOFTLOOKUP_CLIENT_OUTPUT_TABLE_H_
