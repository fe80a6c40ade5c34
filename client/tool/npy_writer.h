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

// Writes a NumPy array of little-endian float32, shape (rows, cols), row by row: how many there are
// is known at the end. Until then the file has no header, so what is cut short is no array. Errors
// are InputErrors.
class NpyWriter {
 public:
  static absl::StatusOr<NpyWriter> Create(const std::string& path, std::uint32_t cols);

  // Whole rows.
  absl::Status Write(absl::Span<const float> rows);

  // Call once, last.
  absl::Status Finish();

 private:
  NpyWriter(std::string path, std::uint32_t cols);
  absl::Status Check() const;

  std::string path_;
  std::uint32_t cols_;
  std::uint64_t elements_ = 0;
  std::ofstream file_;
};

// Writes `matrix` to `path` likewise.
absl::Status WriteNpy(const std::string& path, FloatMatrixView matrix);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_NPY_WRITER_H_
