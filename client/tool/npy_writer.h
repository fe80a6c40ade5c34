#ifndef SOFTLOOKUP_CLIENT_TOOL_NPY_WRITER_H_
#define SOFTLOOKUP_CLIENT_TOOL_NPY_WRITER_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/tool/replaced_file.h"
#include "softlookup/float_matrix.h"

namespace softlookup::tool {

// Writes a NumPy array of little-endian float32, shape (rows, cols), row by row, to a ReplacedFile:
// an older file stays until Publish(). Errors are InputErrors.
class NpyWriter {
 public:
  static absl::StatusOr<NpyWriter> Create(const std::string& path, std::uint32_t cols);

  // Appends rows: [n x cols] for any n.
  absl::Status Write(absl::Span<const float> rows);

  // Writes the header, because only now the number of rows is known, and closes the file. Call this
  // once, after the last Write().
  absl::Status Finish();
  // Puts the file into its place. Call this once, after Finish().
  absl::Status Publish() { return file_.Publish(); }

 private:
  NpyWriter(ReplacedFile file, std::uint32_t cols) : file_(std::move(file)), cols_(cols) {}

  ReplacedFile file_;
  std::uint32_t cols_;
  std::uint64_t elements_ = 0;
};

// Writes `matrix` to `path` as an array in the format of NpyWriter. Errors are InputErrors.
absl::Status WriteNpy(const std::string& path, FloatMatrixView matrix);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_NPY_WRITER_H_
