#include "client/tool/npy_writer.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/status_macros.h"
#include "client/tool/exit_code.h"

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

NpyWriter::NpyWriter(std::string path, std::uint32_t cols)
    : path_(std::move(path)), cols_(cols), file_(path_, std::ios::binary) {}

absl::StatusOr<NpyWriter> NpyWriter::Create(const std::string& path, std::uint32_t cols) {
  errno = 0;
  NpyWriter writer(path, cols);
  writer.file_ << std::string(kHeaderBytes, ' ');
  CLIENT_RETURN_IF_ERROR(writer.Check());
  return writer;
}

absl::Status NpyWriter::Write(absl::Span<const float> rows) {
  errno = 0;
  elements_ += rows.size();
  file_.write(reinterpret_cast<const char*>(rows.data()),
              static_cast<std::streamsize>(rows.size() * sizeof(float)));
  return Check();
}

absl::Status NpyWriter::Finish() {
  errno = 0;
  file_.flush();  // The rows must reach the file before the header.
  CLIENT_RETURN_IF_ERROR(Check());
  file_.seekp(0);
  file_ << Header(cols_ == 0 ? 0 : elements_ / cols_, cols_);
  file_.close();
  return Check();
}

absl::Status NpyWriter::Check() const {
  if (file_) return absl::OkStatus();
  return InputError(path_, absl::StrCat("cannot be written: ", std::strerror(errno)));
}

absl::Status WriteNpy(const std::string& path, FloatMatrixView matrix) {
  CLIENT_ASSIGN_OR_RETURN(NpyWriter writer, NpyWriter::Create(path, matrix.cols));
  CLIENT_RETURN_IF_ERROR(writer.Write(matrix.data));
  return writer.Finish();
}

}  // namespace softlookup::tool
