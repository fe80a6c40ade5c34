#include "client/console/request_reader.h"

#include <cmath>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace softlookup::console {

using output::Json;

namespace {

// Whether `field` is a whole number, 0 or more.
bool IsCount(const Json& field) {
  return field.is_number_unsigned() ||
         (field.is_number_integer() && field.get<std::int64_t>() >= 0);
}

}  // namespace

const Json& RequestReader::Field(const char* name) const {
  static const Json* const kNull = new Json();
  const auto found = object_.find(name);
  return found == object_.end() ? *kNull : *found;
}

void RequestReader::Refuse(const char* name, const std::string& what) {
  if (status_.ok()) {
    status_ = absl::InvalidArgumentError(absl::StrCat(name, " must be ", what));
  }
}

std::string RequestReader::Text(const char* name, const std::string& absent) {
  const Json& field = Field(name);
  if (field.is_null()) return absent;
  if (field.is_string()) {
    const auto& text = field.get_ref<const std::string&>();
    if (text.size() <= kTextBytesMax && output::IsUtf8(text)) return text;
  }
  Refuse(name, absl::StrCat("a text of at most ", kTextBytesMax, " bytes of UTF-8"));
  return absent;
}

bool RequestReader::Flag(const char* name) {
  const Json& field = Field(name);
  if (field.is_boolean()) return field.get<bool>();
  if (!field.is_null()) Refuse(name, "true or false");
  return false;
}

std::optional<double> RequestReader::Number(const char* name) {
  const Json& field = Field(name);
  if (field.is_null()) return std::nullopt;
  if (field.is_number() && std::isfinite(field.get<double>())) return field.get<double>();
  Refuse(name, "a number");
  return std::nullopt;
}

std::optional<std::uint64_t> RequestReader::Count(const char* name, std::uint64_t most) {
  const Json& field = Field(name);
  if (field.is_null()) return std::nullopt;
  if (IsCount(field) && field.get<std::uint64_t>() <= most) {
    return field.get<std::uint64_t>();
  }
  Refuse(name, absl::StrCat("a whole number from 0 to ", most));
  return std::nullopt;
}

const Json& RequestReader::List(const char* name) {
  static const Json* const kEmpty = new Json(Json::array());
  const Json& field = Field(name);
  if (field.is_null()) return *kEmpty;
  if (!field.is_array() || field.size() > kListMax) {
    Refuse(name, absl::StrCat("a list of at most ", kListMax, " elements"));
    return *kEmpty;
  }
  return field;
}

std::vector<std::string> RequestReader::Texts(const char* name) {
  std::vector<std::string> texts;
  for (const Json& element : List(name)) {
    if (!element.is_string() || !output::IsUtf8(element.get_ref<const std::string&>())) {
      Refuse(name, "a list of texts");
      return {};
    }
    texts.push_back(element.get<std::string>());
  }
  return texts;
}

std::vector<std::uint64_t> RequestReader::Ids(const char* name) {
  std::vector<std::uint64_t> ids;
  for (const std::string& text : Texts(name)) {
    std::uint64_t id;
    if (!absl::SimpleAtoi(text, &id)) {
      Refuse(name, "a list of ids, which are whole numbers below 2^64 as texts");
      return {};
    }
    ids.push_back(id);
  }
  return ids;
}

std::vector<std::uint64_t> RequestReader::Counts(const char* name) {
  std::vector<std::uint64_t> counts;
  for (const Json& element : List(name)) {
    if (!IsCount(element)) {
      Refuse(name, "a list of whole numbers");
      return {};
    }
    counts.push_back(element.get<std::uint64_t>());
  }
  return counts;
}

std::vector<double> RequestReader::Numbers(const char* name) {
  std::vector<double> numbers;
  for (const Json& element : List(name)) {
    if (!element.is_number() || !std::isfinite(element.get<double>())) {
      Refuse(name, "a list of numbers");
      return {};
    }
    numbers.push_back(element.get<double>());
  }
  return numbers;
}

FloatMatrix RequestReader::Matrix(const char* name, std::uint32_t cols) {
  FloatMatrix matrix{.rows = 0, .cols = cols, .data = {}};
  const Json& field = Field(name);
  if (field.is_null()) return matrix;
  std::string bytes;
  if (!field.is_string() || !absl::Base64Unescape(field.get_ref<const std::string&>(), &bytes) ||
      bytes.size() % sizeof(float) != 0) {
    Refuse(name, "the base64 of float32 numbers");
    return matrix;
  }
  matrix.data.resize(bytes.size() / sizeof(float));
  if (!bytes.empty()) memcpy(matrix.data.data(), bytes.data(), bytes.size());
  if (cols == 0 || matrix.data.size() % cols != 0) {
    Refuse(name, absl::StrCat("rows of ", cols, " numbers"));
    return {.rows = 0, .cols = cols, .data = {}};
  }
  matrix.rows = static_cast<std::uint32_t>(matrix.data.size() / cols);
  return matrix;
}

std::string FloatsText(absl::Span<const float> floats) {
  return absl::Base64Escape(
      {reinterpret_cast<const char*>(floats.data()), floats.size() * sizeof(float)});
}

}  // namespace softlookup::console
