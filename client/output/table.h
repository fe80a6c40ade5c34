#ifndef SOFTLOOKUP_CLIENT_OUTPUT_TABLE_H_
#define SOFTLOOKUP_CLIENT_OUTPUT_TABLE_H_

#include <ostream>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace softlookup::tool {

enum class Align { kLeft, kRight };

// A table of text, its columns as wide as their widest cell (in code points of UTF-8). Cells are
// shown as TerminalText() has them.
class Table {
 public:
  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // One cell a column.
  void AddRow(std::vector<std::string> cells);

  void Print(std::ostream* out, const std::string& indent = "") const;

 private:
  const std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// "[0.5 -1 2]"; of more than 16 components the first 8 and the last 2 with their number.
std::string VectorText(absl::Span<const double> vector);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_OUTPUT_TABLE_H_
