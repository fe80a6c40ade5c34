#include "client/tool/byte_source.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/status_macros.h"
#include "client/tool/exit_code.h"

namespace softlookup::tool {
namespace {

constexpr std::size_t kReadAheadBytes = 1 << 16;
constexpr std::size_t kLineBytesMax = 16 << 20;  // Holds over 100,000 numbers.

}  // namespace

absl::StatusOr<ByteSource> ByteSource::Open(const std::string& path) {
  if (path == "-") return ByteSource("standard input", stdin);
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return InputError(path, std::strerror(errno));
  return ByteSource(path, file);
}

absl::StatusOr<std::size_t> ByteSource::Read(void* out, std::size_t size) {
  errno = 0;
  const std::size_t count = std::fread(out, 1, size, file_.get());
  if (std::ferror(file_.get()) != 0 && errno == EINTR) return absl::CancelledError("interrupted");
  if (std::ferror(file_.get()) != 0) return InputError(name_, std::strerror(errno));
  return count;
}

absl::StatusOr<bool> ByteSource::ReadLine(std::string* line) {
  line->clear();
  bool ended = false;  // Whether "\n" ended the line, rather than the end of the file.
  while (!ended) {
    if (next_ == buffer_.size()) {
      buffer_.resize(kReadAheadBytes);
      CLIENT_ASSIGN_OR_RETURN(const std::size_t size, Read(buffer_.data(), buffer_.size()));
      buffer_.resize(size);
      next_ = 0;
      if (size == 0) break;
    }
    const std::size_t end = std::min(buffer_.find('\n', next_), buffer_.size());
    ended = end < buffer_.size();
    line->append(buffer_, next_, end - next_);
    next_ = end + (ended ? 1 : 0);
    if (line->size() > kLineBytesMax) {
      return InputError(name_, absl::StrCat("line ", line_number_ + 1, " is longer than ",
                                            kLineBytesMax, " bytes"));
    }
  }
  if (!ended && line->empty()) return false;
  if (++line_number_ == 1 && absl::StartsWith(*line, kNpyMagic)) {
    return InputError(name_,
                      absl::StrCat("is a .npy file, but it must be text, one line a row",
                                   file_.get() == stdin ? "; --format npy reads its rows" : ""));
  }
  if (line_number_ == 1 && absl::StartsWith(*line, kByteOrderMark)) {
    line->erase(0, std::strlen(kByteOrderMark));
  }
  if (!line->empty() && line->back() == '\r') line->pop_back();
  return true;
}

}  // namespace softlookup::tool
