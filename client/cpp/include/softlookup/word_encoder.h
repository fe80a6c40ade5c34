#ifndef SOFTLOOKUP_WORD_ENCODER_H_
#define SOFTLOOKUP_WORD_ENCODER_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/types/span.h"

namespace softlookup {

// Maps text to a pseudo-random unit vector. The same text gives the same bits on every machine. The
// vectors of different texts are nearly orthogonal: their cosine has standard deviation
// 1 / sqrt(dim). The encoding is for demonstrations and tests; it does not depend on what a text
// means.
//
// The definition, for other implementations:
//   1. state = FNV-1a, 64 bits, of the bytes of the text (UTF-8 as given, not normalised).
//   2. Component i draws three SplitMix64 outputs and adds up their twelve 16-bit parts;
//      x_i = 2 * sum - 12 * 65535, nearly normal by the central limit theorem.
//   3. n = the sum of x_i^2. If it is 0, x_0 = n = 1.
//   4. The component is float32(float64(x_i) / sqrt(float64(n))).
// Steps 1 to 3 are exact integer arithmetic (n < 2^57). Step 4 takes one square root and one
// division, which IEEE 754 rounds correctly. So neither the order of summation, nor fused
// multiply-add, nor a math library can change a bit.
//
// Immutable, so thread-safe.
class WordEncoder {
 public:
  // Aborts unless `dim` is in [1, 65536].
  explicit WordEncoder(std::uint32_t dim);

  std::uint32_t dim() const { return dim_; }

  // Writes the encoding to `out`. Aborts unless `out` holds dim() floats.
  void Encode(std::string_view text, absl::Span<float> out) const;

  std::vector<float> Encode(std::string_view text) const;

 private:
  std::uint32_t dim_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_WORD_ENCODER_H_
