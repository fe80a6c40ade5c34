#include "client/tool/npy_reader.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/cpp/status_macros.h"
#include "client/tool/exit_code.h"

namespace softlookup::tool {
namespace {

constexpr char kMagic[] = "\x93NUMPY";
constexpr std::size_t kMagicSize = 6;
constexpr std::uint32_t kHeaderBytesMax = 1 << 16;
constexpr std::uint32_t kPartElementsMax = 1 << 18;

struct Header {
  std::uint64_t rows = 0;
  bool is_float64 = false;
};

// The text after `'key':` in a header, which is a Python dictionary. Empty if the key is missing.
absl::string_view After(absl::string_view header, const std::string& key) {
  const std::size_t at = header.find(absl::StrCat("'", key, "'"));
  if (at == absl::string_view::npos) return {};
  absl::string_view rest = absl::StripLeadingAsciiWhitespace(header.substr(at + key.size() + 2));
  if (!absl::ConsumePrefix(&rest, ":")) return {};
  return absl::StripLeadingAsciiWhitespace(rest);
}

// Sets `inside` to the text between `open`, which must begin `text`, and the next `close`. False if
// `text` does not have both.
bool Between(absl::string_view text, char open, char close, absl::string_view* inside) {
  if (text.empty() || text.front() != open) return false;
  const std::size_t end = text.find(close, 1);
  if (end == absl::string_view::npos) return false;
  *inside = text.substr(1, end - 1);
  return true;
}

absl::StatusOr<std::string> ReadHeaderText(ByteSource* source) {
  const auto not_npy = [source] {
    return InputError(source->name(), "not a .npy file, as numpy.save writes it");
  };
  unsigned char start[kMagicSize + 2];
  CLIENT_ASSIGN_OR_RETURN(const std::size_t read, source->Read(start, sizeof(start)));
  if (read == 0) return InputError(source->name(), "is empty");
  if (read < sizeof(start) || std::memcmp(start, kMagic, kMagicSize) != 0) return not_npy();
  const int version = start[kMagicSize];
  if (version < 1 || version > 3) {
    return InputError(source->name(), absl::StrCat("unknown .npy version ", version));
  }
  std::uint32_t size = 0;
  const std::size_t size_bytes = version == 1 ? 2 : 4;
  CLIENT_ASSIGN_OR_RETURN(const std::size_t size_read, source->Read(&size, size_bytes));
  if (size_read < size_bytes || size > kHeaderBytesMax) return not_npy();
  std::string text(size, '\0');
  CLIENT_ASSIGN_OR_RETURN(const std::size_t text_read, source->Read(text.data(), size));
  if (text_read < size) return not_npy();
  return text;
}

class NpyReader : public RowReader {
 public:
  NpyReader(ByteSource source, Columns columns)
      : RowReader(std::move(source), std::move(columns)) {}

  absl::Status ReadHeader() {
    CLIENT_ASSIGN_OR_RETURN(const std::string text, ReadHeaderText(&source_));
    absl::string_view type;
    if (!Between(After(text, "descr"), '\'', '\'', &type)) {
      return InputError(name(), "an array of records; it must hold one float32 or float64 a cell");
    }
    is_float64_ = type == "<f8";
    if (!is_float64_ && type != "<f4") {
      return InputError(name(), absl::StrCat("holds elements of type ", type,
                                             "; save it as little-endian float32 or float64, for "
                                             "example with array.astype('<f4')"));
    }
    if (absl::StartsWith(After(text, "fortran_order"), "True")) {
      return InputError(name(),
                        "is in Fortran order; save it in C order with numpy.ascontiguousarray");
    }
    absl::string_view shape;
    std::vector<std::uint64_t> sizes;
    if (!Between(After(text, "shape"), '(', ')', &shape)) {
      return InputError(name(), "its header has no shape");
    }
    for (const absl::string_view part : absl::StrSplit(shape, ',', absl::SkipWhitespace())) {
      if (!absl::SimpleAtoi(part, &sizes.emplace_back())) {
        return InputError(name(), absl::StrCat("its header has the shape (", shape, ")"));
      }
    }
    if (sizes.size() == 1 && columns_.count == 0) {
      return InputError(name(),
                        "has 1 dimension, which may be a row or a column; save it with 2, for "
                        "example with array.reshape(-1, 1)");
    }
    if (sizes.size() == 1) {
      sizes.insert(columns_.count == 1 ? sizes.end() : sizes.begin(), 1);
    }
    if (sizes.size() != 2) {
      return InputError(name(), absl::StrCat("has ", sizes.size(), " dimensions; it must have 2"));
    }
    CLIENT_RETURN_IF_ERROR(CheckColumns("", sizes[1]));
    rows_ = sizes[0];
    return absl::OkStatus();
  }

  std::optional<std::uint64_t> row_count() const override { return rows_; }

 private:
  absl::StatusOr<std::uint32_t> ReadRows(std::uint32_t rows_max,
                                         std::vector<float>* rows) override {
    const std::uint64_t left = rows_ - rows_read_;
    if (left == 0) return AtEnd();
    const auto count = static_cast<std::uint32_t>(std::min<std::uint64_t>(rows_max, left));
    // Grow `rows` in parts as data arrives: a header may claim more rows than the file has.
    const std::uint32_t part_max = std::max<std::uint32_t>(kPartElementsMax / columns_.count, 1);
    for (std::uint32_t done = 0; done < count;) {
      const std::uint32_t part = std::min(part_max, count - done);
      CLIENT_RETURN_IF_ERROR(ReadPart(rows_read_ + done, part, rows));
      done += part;
    }
    return count;
  }

  // Appends the next `count` rows of the file to `rows`. `first_row` is the number of the first.
  absl::Status ReadPart(std::uint64_t first_row, std::uint32_t count, std::vector<float>* rows) {
    const std::size_t begin = rows->size();
    rows->resize(begin + std::size_t{count} * columns_.count);
    if (!is_float64_) return ReadElements(first_row, rows->data() + begin, rows->size() - begin);
    doubles_.resize(rows->size() - begin);
    CLIENT_RETURN_IF_ERROR(ReadElements(first_row, doubles_.data(), doubles_.size()));
    std::transform(doubles_.begin(), doubles_.end(), rows->begin() + begin,
                   [](double value) { return static_cast<float>(value); });
    return absl::OkStatus();
  }

  template <typename Element>
  absl::Status ReadElements(std::uint64_t first_row, Element* out, std::size_t count) {
    CLIENT_ASSIGN_OR_RETURN(const std::size_t bytes, source_.Read(out, count * sizeof(Element)));
    if (bytes < count * sizeof(Element)) {
      const std::uint64_t row = first_row + bytes / sizeof(Element) / columns_.count;
      return InputError(name(), absl::StrCat("ends in row ", row, " (from 0) of ", rows_));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::uint32_t> AtEnd() {
    char surplus;
    CLIENT_ASSIGN_OR_RETURN(const std::size_t bytes, source_.Read(&surplus, 1));
    if (bytes > 0) return InputError(name(), absl::StrCat("goes on after its ", rows_, " rows"));
    return 0;
  }

  std::uint64_t rows_ = 0;
  bool is_float64_ = false;
  std::vector<double> doubles_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RowReader>> OpenNpy(ByteSource source, Columns columns) {
  auto reader = std::make_unique<NpyReader>(std::move(source), std::move(columns));
  CLIENT_RETURN_IF_ERROR(reader->ReadHeader());
  return reader;
}

}  // namespace softlookup::tool
