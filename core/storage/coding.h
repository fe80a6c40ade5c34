#ifndef SOFTLOOKUP_CORE_STORAGE_CODING_H_
#define SOFTLOOKUP_CORE_STORAGE_CODING_H_

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace softlookup {

static_assert(std::endian::native == std::endian::little, "records are written as they lie");

// Writes numbers and strings one after another, in the encoding of docs/storage_format.md.
class Encoder {
 public:
  template <typename T>
  void Put(T number) {
    static_assert(std::is_arithmetic_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&number), sizeof(T));
  }
  template <typename T>
  void PutAll(absl::Span<const T> numbers) {
    static_assert(std::is_arithmetic_v<T>);
    bytes_.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T));
  }
  void PutString(absl::string_view string) {
    Put(static_cast<std::uint32_t>(string.size()));
    bytes_.append(string.data(), string.size());
  }
  void PutBytes(absl::string_view bytes) { bytes_.append(bytes.data(), bytes.size()); }

  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Reads what an Encoder wrote. Once a read goes beyond the end, ok() is false, and that read and
// all later ones return zero or empty.
class Decoder {
 public:
  explicit Decoder(absl::string_view bytes) : bytes_(bytes) {}

  bool ok() const { return ok_; }
  bool at_end() const { return ok_ && bytes_.empty(); }

  template <typename T>
  T Get() {
    T number{};
    const absl::string_view bytes = GetBytes(sizeof(T));
    if (ok_) std::memcpy(&number, bytes.data(), sizeof(T));
    return number;
  }
  template <typename T>
  std::vector<T> GetAll(std::uint64_t count) {
    const absl::string_view bytes = GetBytes(Times(count, sizeof(T)));
    std::vector<T> numbers(bytes.size() / sizeof(T));
    if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
    return numbers;
  }
  absl::string_view GetString() { return GetBytes(Get<std::uint32_t>()); }
  absl::string_view GetBytes(std::uint64_t count) {
    if (count > bytes_.size()) {
      ok_ = false;
      bytes_ = {};
      return {};
    }
    const absl::string_view bytes = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return bytes;
  }
  // Returns the bytes that were not read yet.
  absl::string_view rest() const { return bytes_; }

 private:
  // Returns the product, or the largest number if the product does not fit into 64 bits. No input
  // has that many bytes, so GetBytes() then fails.
  static std::uint64_t Times(std::uint64_t count, std::uint64_t size) {
    return count > ~std::uint64_t{0} / size ? ~std::uint64_t{0} : count * size;
  }

  absl::string_view bytes_;
  bool ok_ = true;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORAGE_CODING_H_
