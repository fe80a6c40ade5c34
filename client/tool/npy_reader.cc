#include "client/tool/npy_reader.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/cpp/status_macros.h"
#include "client/output/figure_text.h"
#include "client/tool/exit_code.h"

namespace softlookup::tool {
namespace {

constexpr std::size_t kMagicSize = sizeof(kNpyMagic) - 1;
constexpr std::uint32_t kHeaderBytesMax = 1 << 16;   // A longer header is refused.
constexpr std::uint32_t kPartElementsMax = 1 << 18;  // Most read at a time, or one row.

// What to do with an array of classes instead of vectors.
constexpr char kOneHotHint[] =
    "class labels, as whole numbers from 0, become one-hot rows by numpy.eye(classes)[labels]";

// A float16: binary16 of IEEE 754.
struct Half {
  std::uint16_t bits;

  explicit operator float() const {
    const int exponent = bits >> 10 & 0x1f;
    const int fraction = bits & 0x3ff;
    const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
    constexpr int kFractionBits = 10, kBias = 15, kSpecial = 0x1f;
    if (exponent == kSpecial) {
      using Limits = std::numeric_limits<float>;
      return sign * (fraction == 0 ? Limits::infinity() : Limits::quiet_NaN());
    }
    if (exponent == 0)
      return sign * std::ldexp(static_cast<float>(fraction), 1 - kBias - kFractionBits);
    return sign * std::ldexp(static_cast<float>((1 << kFractionBits) + fraction),
                             exponent - kBias - kFractionBits);
  }
};

// A boolean of NumPy: any byte but 0 is true.
struct Bool {
  std::uint8_t byte;

  explicit operator float() const { return byte != 0 ? 1.0f : 0.0f; }
};

// Rounds the `count` elements at `bytes`, which need not be aligned, to float32.
template <typename Element>
void ToFloats(const char* bytes, std::size_t count, float* floats) {
  for (std::size_t i = 0; i < count; ++i) {
    Element element;
    std::memcpy(&element, bytes + i * sizeof(Element), sizeof(Element));
    floats[i] = static_cast<float>(element);
  }
}

// An element type of NumPy, and how to read its elements.
struct ElementType {
  const char* name;   // In a header, after the character of the byte order.
  std::size_t bytes;  // Of one element.
  void (*to_floats)(const char* bytes, std::size_t count, float* floats);
};

template <typename Element>
constexpr ElementType TypeOf(const char* name) {
  return {name, sizeof(Element), ToFloats<Element>};
}

constexpr ElementType kElementTypes[] = {
    TypeOf<float>("f4"),         TypeOf<double>("f8"),        TypeOf<Half>("f2"),
    TypeOf<std::uint8_t>("u1"),  TypeOf<std::int8_t>("i1"),   TypeOf<Bool>("b1"),
    TypeOf<std::uint16_t>("u2"), TypeOf<std::int16_t>("i2"),  TypeOf<std::uint32_t>("u4"),
    TypeOf<std::int32_t>("i4"),  TypeOf<std::uint64_t>("u8"), TypeOf<std::int64_t>("i8")};

// Returns the type that `text` names in a header, such as "<f4". Null if it is unknown or
// big-endian.
const ElementType* FindType(absl::string_view text) {
  if (text.empty()) return nullptr;
  const auto* const found =
      std::find_if(std::begin(kElementTypes), std::end(kElementTypes),
                   [text](const ElementType& each) { return text.substr(1) == each.name; });
  if (found == std::end(kElementTypes)) return nullptr;
  // For an element of one byte, the character of the byte order means nothing.
  return text[0] == '<' || found->bytes == 1 ? found : nullptr;
}

// Says what is wrong with elements of `type`, which FindType() does not know.
std::string WrongTypeText(absl::string_view type) {
  if (type.find_first_of("UOSa") == 1) {
    return absl::StrCat("holds text or objects, elements of type ", type,
                        ", but it must hold numbers; ", kOneHotHint);
  }
  return absl::StrCat("holds elements of type ", type,
                      "; save it as little-endian float32, for example with array.astype('<f4')");
}

// Returns the text after `'key':` in `header`, which is a Python dictionary. Empty if the key is
// missing.
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
  if (read < sizeof(start) || std::memcmp(start, kNpyMagic, kMagicSize) != 0) return not_npy();
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
      return InputError(name(), "an array of records; it must hold one number a cell");
    }
    const ElementType* const found = FindType(type);
    if (found == nullptr) {
      return InputError(name(), WrongTypeText(type));
    }
    type_ = *found;
    is_by_columns_ = absl::StartsWith(After(text, "fortran_order"), "True");
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
    const bool one_dimension = sizes.size() == 1;
    const bool may_be_classes = one_dimension && (type_.name[0] == 'i' || type_.name[0] == 'u');
    const std::string class_hint = may_be_classes ? absl::StrCat("; ", kOneHotHint) : "";
    if (one_dimension && columns_.count == 0) {
      return InputError(
          name(),
          may_be_classes
              ? absl::StrCat(
                    "has 1 dimension", class_hint,
                    "; numbers that are no classes become a column by array.reshape(-1, 1)")
              : "has 1 dimension, which may be a row or a column; save it with 2, for example with "
                "array.reshape(-1, 1)");
    }
    if (one_dimension) {
      sizes.insert(columns_.count == 1 ? sizes.end() : sizes.begin(), 1);
    }
    if (sizes.size() != 2) {
      return InputError(name(), absl::StrCat("has ", output::Counted(sizes.size(), "dimension"),
                                             "; it must have 2"));
    }
    if (const absl::Status columns = CheckColumns("", sizes[1]); !columns.ok()) {
      return AsInputError(absl::InvalidArgumentError(absl::StrCat(columns.message(), class_hint)));
    }
    rows_ = sizes[0];
    if (rows_ > std::numeric_limits<std::int64_t>::max() / columns_.count) {
      return InputError(name(), absl::StrCat("its header has the shape (", shape,
                                             "), which is more than there can be"));
    }
    return absl::OkStatus();
  }

  std::optional<std::uint64_t> row_count() const override { return rows_; }

 private:
  absl::StatusOr<std::uint32_t> ReadRows(std::uint32_t rows_max,
                                         std::vector<float>* rows) override {
    const std::uint64_t left = rows_ - rows_read_;
    if (left == 0) return AtEnd();
    const auto count = static_cast<std::uint32_t>(std::min<std::uint64_t>(rows_max, left));
    if (is_by_columns_) return ReadFromColumns(count, rows);
    // Grow `rows` in parts as data arrives: a header may claim more rows than the file has.
    const std::uint32_t part_max = std::max<std::uint32_t>(kPartElementsMax / columns_.count, 1);
    for (std::uint32_t done = 0; done < count;) {
      const std::uint32_t part = std::min(part_max, count - done);
      CLIENT_RETURN_IF_ERROR(ReadPart(rows_read_ + done, part, rows));
      done += part;
    }
    return count;
  }

  // Appends the next `count` rows of the file to `rows`. `first_row` is the number of the first in
  // the file, for the error.
  absl::Status ReadPart(std::uint64_t first_row, std::uint32_t count, std::vector<float>* rows) {
    CLIENT_ASSIGN_OR_RETURN(const std::size_t read,
                            ReadElements(std::size_t{count} * columns_.count, rows));
    if (read < std::size_t{count} * columns_.count) {
      const std::uint64_t row = first_row + read / columns_.count;
      return InputError(name(), absl::StrCat("ends in row ", row, " (from 0) of ", rows_));
    }
    return absl::OkStatus();
  }

  // Appends the next `count` elements of the file to `floats`, fewer only at the end. Returns how
  // many it appended.
  absl::StatusOr<std::size_t> ReadElements(std::size_t count, std::vector<float>* floats) {
    bytes_.resize(count * type_.bytes);
    CLIENT_ASSIGN_OR_RETURN(const std::size_t bytes, source_.Read(bytes_.data(), bytes_.size()));
    const std::size_t read = bytes / type_.bytes;
    const std::size_t begin = floats->size();
    floats->resize(begin + read);
    type_.to_floats(bytes_.data(), read, floats->data() + begin);
    return read;
  }

  // Appends the next `count` rows of an array in Fortran order to `rows`. The first call reads the
  // whole array, because each row has an element in the last column, which ends the file.
  absl::StatusOr<std::uint32_t> ReadFromColumns(std::uint32_t count, std::vector<float>* rows) {
    const std::uint64_t cols = columns_.count;
    while (by_columns_.size() / cols < rows_) {
      const std::uint64_t left = rows_ * cols - by_columns_.size();
      const std::size_t part = std::min<std::uint64_t>(left, kPartElementsMax);
      CLIENT_ASSIGN_OR_RETURN(const std::size_t read, ReadElements(part, &by_columns_));
      if (read < part) {
        return InputError(name(), absl::StrCat("ends in column ", by_columns_.size() / rows_,
                                               " (from 0) of ", cols));
      }
    }
    for (std::uint64_t row = rows_read_; row < rows_read_ + count; ++row) {
      for (std::uint64_t c = 0; c < cols; ++c) rows->push_back(by_columns_[c * rows_ + row]);
    }
    return count;
  }

  absl::StatusOr<std::uint32_t> AtEnd() {
    char surplus;
    CLIENT_ASSIGN_OR_RETURN(const std::size_t bytes, source_.Read(&surplus, 1));
    if (bytes > 0)
      return InputError(name(), absl::StrCat("goes on after its ", output::Counted(rows_, "row")));
    return 0;
  }

  std::uint64_t rows_ = 0;
  ElementType type_ = kElementTypes[0];
  bool is_by_columns_ = false;     // In Fortran order.
  std::vector<float> by_columns_;  // All elements of an array in Fortran order.
  std::vector<char> bytes_;        // Buffer of ReadElements().
};

}  // namespace

absl::StatusOr<std::unique_ptr<RowReader>> OpenNpy(ByteSource source, Columns columns) {
  auto reader = std::make_unique<NpyReader>(std::move(source), std::move(columns));
  CLIENT_RETURN_IF_ERROR(reader->ReadHeader());
  return reader;
}

}  // namespace softlookup::tool
