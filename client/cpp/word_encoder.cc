#include "softlookup/word_encoder.h"

#include <cmath>
#include <cstdlib>

namespace softlookup {
namespace {

std::uint64_t Fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return hash;
}

std::uint64_t SplitMix64(std::uint64_t* state) {
  std::uint64_t z = *state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

std::int32_t NearlyNormal(std::uint64_t* state) {
  std::int32_t sum = 0;
  for (int draw = 0; draw < 3; ++draw) {
    const std::uint64_t bits = SplitMix64(state);
    for (int shift = 0; shift < 64; shift += 16) {
      sum += static_cast<std::int32_t>((bits >> shift) & 0xffff);
    }
  }
  return 2 * sum - 12 * 65535;
}

}  // namespace

WordEncoder::WordEncoder(std::uint32_t dim) : dim_(dim) {
  if (dim < 1 || dim > 65536) std::abort();
}

void WordEncoder::Encode(std::string_view text, absl::Span<float> out) const {
  if (out.size() != dim_) std::abort();
  std::uint64_t state = Fnv1a(text);
  std::uint64_t square_sum = 0;
  // |x| < 2^20, so a float holds x exactly. `out` holds the x until the norm is known.
  for (float& component : out) {
    const std::int64_t x = NearlyNormal(&state);
    square_sum += static_cast<std::uint64_t>(x * x);
    component = static_cast<float>(x);
  }
  if (square_sum == 0) {
    out[0] = 1;
    square_sum = 1;
  }
  const double norm = std::sqrt(static_cast<double>(square_sum));
  for (float& component : out) component = static_cast<float>(component / norm);
}

std::vector<float> WordEncoder::Encode(std::string_view text) const {
  std::vector<float> out(dim_);
  Encode(text, absl::MakeSpan(out));
  return out;
}

}  // namespace softlookup
