#ifndef SOFTLOOKUP_CLIENT_TOOL_BYTE_SOURCE_H_
#define SOFTLOOKUP_CLIENT_TOOL_BYTE_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace softlookup::tool {

// What some editors begin a file of text with.
inline constexpr char kByteOrderMark[] = "\xef\xbb\xbf";

// A file or standard input, read once from front to back, either by bytes or by lines. Errors are
// InputErrors.
class ByteSource {
 public:
  // "-" is standard input.
  static absl::StatusOr<ByteSource> Open(const std::string& path);

  // For messages: the path, or "standard input".
  const std::string& name() const { return name_; }

  // Reads `size` bytes; fewer only at the end.
  absl::StatusOr<std::size_t> Read(void* out, std::size_t size);

  // Reads a line, of at most 16 MiB, without its end ("\n" or "\r\n") and, the first, without a
  // byte order mark; false at the end.
  absl::StatusOr<bool> ReadLine(std::string* line);

  // Of the last line read; the first is 1.
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
  std::string buffer_;    // For lines.
  std::size_t next_ = 0;  // The first byte of buffer_ that no line has taken.
  std::uint64_t line_number_ = 0;
};

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_BYTE_SOURCE_H_
