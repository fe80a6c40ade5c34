#ifndef SOFTLOOKUP_CLIENT_TOOL_NPY_WRITER_H_
#define SOFTLOOKUP_CLIENT_TOOL_NPY_WRITER_H_

#include <cstdint>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "softlookup/float_matrix.h"

namespace softlookup::tool {

// Writes a NumPy array of little-endian float32, shape (rows, cols), row by row. Finish() writes
// the header, because only then the number of rows is known. Before, the file is not a valid array.
// Errors are InputErrors.
class NpyWriter {
 public:
  static absl::StatusOr<NpyWriter> Create(const std::string& path, std::uint32_t cols);

  // Appends rows: [n x cols] for any n.
  absl::Status Write(absl::Span<const float> rows);

  // Writes the header and closes the file. Call this once, after the last Write().
  absl::Status Finish();

 private:
  NpyWriter(std::string path, std::uint32_t cols);
  absl::Status Check() const;

  std::string path_;
  std::uint32_t cols_;
  std::uint64_t elements_ = 0;
  std::ofstream file_;
};

// Writes `matrix` to `path` as an array in the format of NpyWriter. Errors are InputErrors.
absl::Status WriteNpy(const std::string& path, FloatMatrixView matrix);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_NPY_WRITER_H_
