#include "client/tool/row_reader.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/terminal_text.h"
#include "client/cpp/status_macros.h"
#include "client/output/figure_text.h"
#include "client/tool/csv_reader.h"
#include "client/tool/exit_code.h"
#include "client/tool/fvecs_reader.h"
#include "client/tool/npy_reader.h"

namespace softlookup::tool {
namespace {

constexpr std::uint32_t kColumnsMax = 1 << 17;  // A key and a value of the largest dimensions.

}  // namespace

absl::StatusOr<std::uint32_t> RowReader::Read(std::uint32_t rows_max, std::vector<float>* rows) {
  rows->clear();
  CLIENT_ASSIGN_OR_RETURN(const std::uint32_t count, ReadRows(rows_max, rows));
  const auto bad =
      std::find_if(rows->begin(), rows->end(), [](float value) { return !std::isfinite(value); });
  if (bad != rows->end()) {
    const std::uint64_t index = bad - rows->begin();
    return InputError(name(),
                      absl::StrCat("row ", rows_read_ + index / columns_.count, ", column ",
                                   index % columns_.count, " (from 0): not a finite float32"));
  }
  rows_read_ += count;
  return count;
}

absl::Status RowReader::CheckColumns(const std::string& where, std::uint64_t count) {
  if (columns_.count == 0 && count > 0 && count <= kColumnsMax) {
    columns_ = {static_cast<std::uint32_t>(count), ""};
  }
  if (count > 0 && count == columns_.count) return absl::OkStatus();
  std::string needed = absl::StrCat("not in [1, ", kColumnsMax, "]");
  if (columns_.count > 0) {
    needed = absl::StrCat("but ",
                          columns_.meaning.empty() ? "the first row has" : columns_.meaning + " is",
                          " ", columns_.count);
  }
  return InputError(name(), absl::StrCat(where.empty() ? "has" : where + ":", " ",
                                         output::Counted(count, "column"), ", ", needed));
}

void RowReader::Note(const std::string& text) const {
  if (notes_ == nullptr) return;
  *notes_ << "softlookup: " << cli::TerminalText(absl::StrCat(name(), ": ", text)) << "\n";
}

const std::vector<std::string>& RowFormats() {
  static const auto* const formats = new std::vector<std::string>{"csv", "npy", "fvecs"};
  return *formats;
}

absl::StatusOr<std::unique_ptr<RowReader>> OpenRows(const std::string& path,
                                                    const std::string& format, Columns columns,
                                                    std::ostream* notes) {
  std::string chosen = path == "-" ? format : std::string();
  for (const std::string& known : RowFormats()) {
    if (absl::EndsWithIgnoreCase(path, absl::StrCat(".", known))) chosen = known;
  }
  if (chosen.empty()) {
    return InputError(path, "unknown kind of file: it must end in .csv, .npy or .fvecs");
  }
  CLIENT_ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(path));
  const auto open = chosen == "npy" ? OpenNpy : chosen == "fvecs" ? OpenFvecs : OpenCsv;
  CLIENT_ASSIGN_OR_RETURN(auto reader, open(std::move(source), std::move(columns)));
  reader->set_notes(notes);
  return reader;
}

absl::StatusOr<FloatMatrix> ReadMatrix(const std::string& path, const std::string& format,
                                       Columns columns, std::ostream* notes) {
  constexpr std::uint32_t kBatchRows = 4096;
  CLIENT_ASSIGN_OR_RETURN(const auto reader, OpenRows(path, format, std::move(columns), notes));
  FloatMatrix matrix;
  std::vector<float> batch;
  for (;;) {
    CLIENT_ASSIGN_OR_RETURN(const std::uint32_t count, reader->Read(kBatchRows, &batch));
    matrix.cols = reader->cols();
    if (count == 0) return matrix;
    matrix.data.insert(matrix.data.end(), batch.begin(), batch.end());
    matrix.rows += count;
  }
}

absl::StatusOr<Columns> InputColumns(const v1::Store& store) {
  const std::uint32_t count = store.projection().key().cols();
  if (count == 0)
    return UsageError(
        store.name() +
        " has no projection, so it takes no --inputs; `softlookup store update` sets one");
  return Columns{count, "the projection's input_dim"};
}

}  // namespace softlookup::tool
