#include "client/tool/npy_writer.h"

#include <cerrno>
#include <ostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/status_macros.h"

namespace softlookup::tool {
namespace {

// Bytes of the whole header: magic, version, size of the text, text. A multiple of 64, as the
// format requires, with room for the longest shape.
constexpr std::size_t kHeaderBytes = 128;
constexpr std::size_t kPreambleBytes = 10;

std::string Header(std::uint64_t rows, std::uint32_t cols) {
  constexpr std::size_t kTextBytes = kHeaderBytes - kPreambleBytes;
  std::string text =
      absl::StrCat("{'descr': '<f4', 'fortran_order': False, 'shape': (", rows, ", ", cols, "), }");
  text.append(kTextBytes - 1 - text.size(), ' ');
  text.push_back('\n');
  const std::string preamble{
      '\x93', 'N', 'U', 'M', 'P', 'Y', '\x01', '\x00', static_cast<char>(kTextBytes), '\x00'};
  return preamble + text;
}

}  // namespace

absl::StatusOr<NpyWriter> NpyWriter::Create(const std::string& path, std::uint32_t cols) {
  CLIENT_ASSIGN_OR_RETURN(ReplacedFile file, ReplacedFile::Create(path));
  errno = 0;
  file.stream() << std::string(kHeaderBytes, ' ');
  CLIENT_RETURN_IF_ERROR(file.Check());
  return NpyWriter(std::move(file), cols);
}

absl::Status NpyWriter::Write(absl::Span<const float> rows) {
  errno = 0;
  elements_ += rows.size();
  file_.stream().write(reinterpret_cast<const char*>(rows.data()),
                       static_cast<std::streamsize>(rows.size() * sizeof(float)));
  return file_.Check();
}

absl::Status NpyWriter::Finish() {
  errno = 0;
  file_.stream().seekp(0);
  file_.stream() << Header(cols_ == 0 ? 0 : elements_ / cols_, cols_);
  CLIENT_RETURN_IF_ERROR(file_.Check());
  return file_.Close();
}

absl::Status WriteNpy(const std::string& path, FloatMatrixView matrix) {
  CLIENT_ASSIGN_OR_RETURN(NpyWriter writer, NpyWriter::Create(path, matrix.cols));
  CLIENT_RETURN_IF_ERROR(writer.Write(matrix.data));
  CLIENT_RETURN_IF_ERROR(writer.Finish());
  return writer.Publish();
}

}  // namespace softlookup::tool
