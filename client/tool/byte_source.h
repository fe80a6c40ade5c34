#ifndef SOFTLOOKUP_CLIENT_TOOL_BYTE_SOURCE_H_
#define SOFTLOOKUP_CLIENT_TOOL_BYTE_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace softlookup::tool {

// The byte order mark of UTF-8, which some editors write at the start of a text file.
inline constexpr char kByteOrderMark[] = "\xef\xbb\xbf";

// The first bytes of a .npy file.
inline constexpr char kNpyMagic[] = "\x93NUMPY";

// A file or standard input, read once from front to back, either by bytes or by lines. Errors are
// InputErrors.
class ByteSource {
 public:
  // Opens the file at `path`, or standard input for "-".
  static absl::StatusOr<ByteSource> Open(const std::string& path);

  // The path, or "standard input"; for error messages.
  const std::string& name() const { return name_; }

  // Reads `size` bytes into `out`, fewer only at the end of the input. Returns how many it read.
  // Cancelled if a signal ended the wait for input: see InterruptGuard::Reads.
  absl::StatusOr<std::size_t> Read(void* out, std::size_t size);

  // Reads the next line without its end ("\n" or "\r\n"). Drops a byte order mark from the first
  // line. Returns false at the end of the input. Fails for a line over 16 MiB, and for a .npy file,
  // which is no text.
  absl::StatusOr<bool> ReadLine(std::string* line);

  // Number of the last line read, from 1.
  std::uint64_t line_number() const { return line_number_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const {
      if (file != stdin) std::fclose(file);
    }
  };

  ByteSource(std::string name, std::FILE* file) : name_(std::move(name)), file_(file) {}

  std::string name_;
  std::unique_ptr<std::FILE, Close> file_;
  std::string buffer_;    // Bytes that ReadLine() has read ahead.
  std::size_t next_ = 0;  // Index in buffer_ of the first byte that belongs to the next line.
  std::uint64_t line_number_ = 0;
};

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_BYTE_SOURCE_H_
