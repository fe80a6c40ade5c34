#ifndef SOFTLOOKUP_CLIENT_CONSOLE_REQUEST_READER_H_
#define SOFTLOOKUP_CLIENT_CONSOLE_REQUEST_READER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/output/json.h"
#include "softlookup/float_matrix.h"

namespace softlookup::console {

// Reads the fields of a call's JSON object, which a browser sent. A field that is absent or null
// has its default. The first field that is not as it should be sets status(), and what is read
// after it does not matter.
class RequestReader {
 public:
  // `object` must outlive the reader.
  explicit RequestReader(const output::Json& object) : object_(object) {}

  // A text of at most kTextBytesMax bytes of UTF-8.
  std::string Text(const char* name, const std::string& absent = "");
  bool Flag(const char* name);
  // A finite number.
  std::optional<double> Number(const char* name);
  // A whole number from 0 to `most`, at most 2^53, beyond which JavaScript has none.
  std::optional<std::uint64_t> Count(const char* name, std::uint64_t most = kCountMax);
  // Lists of at most kListMax elements. Ids are texts of digits, because they have 64 bits.
  std::vector<std::string> Texts(const char* name);
  std::vector<std::uint64_t> Ids(const char* name);
  std::vector<std::uint64_t> Counts(const char* name);
  std::vector<double> Numbers(const char* name);
  // A matrix of `cols` columns, as the base64 of little-endian float32. Empty if it is absent.
  FloatMatrix Matrix(const char* name, std::uint32_t cols);
  // The field as it is; null if it is absent.
  const output::Json& Field(const char* name) const;

  // Notes that the field `name` is wrong: "NAME must be WHAT".
  void Refuse(const char* name, const std::string& what);
  const absl::Status& status() const { return status_; }

  static constexpr std::uint64_t kCountMax = std::uint64_t{1} << 53;
  static constexpr std::size_t kTextBytesMax = 4096;
  static constexpr std::size_t kListMax = 4096;

 private:
  // Returns a list as it is: a copy would recurse as deep as its elements nest. Empty if it is
  // absent or wrong.
  const output::Json& List(const char* name);

  const output::Json& object_;
  absl::Status status_;
};

// Returns the base64 of the numbers as little-endian float32.
std::string FloatsText(absl::Span<const float> floats);

}  // namespace softlookup::console

#endif  // SOFTLOOKUP_CLIENT_CONSOLE_REQUEST_READER_H_
