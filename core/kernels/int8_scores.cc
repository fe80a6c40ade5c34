#include "core/kernels/int8_scores.h"

#include <algorithm>
#include <array>

#include "core/base/limits.h"
#include "core/kernels/fixed_point.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/int8_scores.cc"
// clang-format off
#include "hwy/foreach_target.h"  // Must come first.
#include "core/kernels/decode-inl.h"
#include "core/kernels/digits-inl.h"
#include "core/kernels/vectors-inl.h"
// clang-format on

#ifndef SOFTLOOKUP_CORE_KERNELS_INT8_SCORES_CC_  // Once for all targets.
#define SOFTLOOKUP_CORE_KERNELS_INT8_SCORES_CC_
namespace softlookup::kernels {

// Components whose products one 32-bit lane adds up at once.
inline constexpr std::int64_t kGroup = 4;
inline constexpr int kQueryDigits = 4;

// Bytes of one group of components of a panel's keys.
inline constexpr std::int64_t kGroupBytes = kGroup * kPanelRows;

// The largest magnitudes are 128 of a digit, 255 of a digit plus 128, and 127 of a key's integer.
static_assert(kInt8FloatDimMax * 128 * 127 < std::int64_t{1} << 24, "float32 holds the sums");
static_assert(kDimMax * 255 * 127 < std::int64_t{1} << 31, "32 bits hold them");

}  // namespace softlookup::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace softlookup::kernels {
namespace HWY_NAMESPACE {

// Writes a query's digits in the form of DigitQueries::digits, in whole vectors. Returns the unit.
float PackQueryOneTarget(const float* components, std::int64_t dim_count, std::uint32_t* digits) {
  const FloatTag d;
  const hn::Repartition<std::uint8_t, IntTag> d8;
  const double bound = FixedPointBound(MagnitudeOf(components, dim_count));
  const FloatVec factor = hn::Set(d, static_cast<float>(0x1p31 / bound));
  // Puts the bytes of equal digits of four components side by side, in one 32-bit element.
  alignas(16) static constexpr std::uint8_t kByDigit[16] = {0, 4, 8,  12, 1, 5, 9,  13,
                                                            2, 6, 10, 14, 3, 7, 11, 15};
  const auto by_digit = hn::LoadDup128(d8, kByDigit);
  const auto pack = [&](const float* from, std::uint32_t* to) HWY_ATTR {
    const IntVec of_component = OffsetDigitsOf(hn::Mul(hn::LoadU(d, from), factor));
    const auto of_digit = hn::TableLookupBytes(hn::BitCast(d8, of_component), by_digit);
    hn::StoreU(of_digit, d8, reinterpret_cast<std::uint8_t*>(to));
  };
  const auto lanes = static_cast<std::int64_t>(kLanes);
  std::int64_t dim = 0;
  for (; dim + lanes <= dim_count; dim += lanes) pack(components + dim, digits + dim);
  if (dim < dim_count) {
    float filled[kLanes] = {};
    std::copy(components + dim, components + dim_count, filled);
    pack(filled, digits + dim);
  }
  return static_cast<float>(bound * 0x1p-31);
}

// Writes the sums of kLanes rows. dots[i] has one number for each row: the sum of the products of
// the key's integers and the query's digit i. Digit 0 is the lowest.
HWY_INLINE void WriteSums(const IntVec (&dots)[kQueryDigits], float query_unit,
                          const float* HWY_RESTRICT key_scales, float* HWY_RESTRICT sums) {
  const FloatTag d;
  const FloatVec step = hn::Set(d, 256.0f);
  const auto dot = [&](int i) HWY_ATTR { return hn::ConvertTo(d, dots[i]); };
  const FloatVec low = hn::MulAdd(dot(1), step, dot(0));
  const FloatVec high = hn::MulAdd(dot(3), step, dot(2));
  const FloatVec sum = hn::MulAdd(high, hn::Set(d, 65536.0f), low);
  const FloatVec of_query = hn::Mul(sum, hn::Set(d, query_unit));
  hn::StoreU(hn::Mul(of_query, hn::LoadU(d, key_scales)), d, sums);
}

// Does the same with double sums. For up to 2^15 components, only the last product is rounded.
HWY_INLINE void WriteSums(const IntVec (&dots)[kQueryDigits], float query_unit,
                          const float* HWY_RESTRICT key_scales, double* HWY_RESTRICT sums) {
  const DoubleTag d;
  const hn::Half<IntTag> di;
  const DoubleVec step = hn::Set(d, 256.0);
  for (std::size_t half = 0; half < 2; ++half) {
    const auto dot = [&](int i) HWY_ATTR {
      return hn::PromoteTo(d, half == 0 ? hn::LowerHalf(di, dots[i]) : hn::UpperHalf(di, dots[i]));
    };
    DoubleVec sum = hn::MulAdd(dot(3), step, dot(2));
    sum = hn::MulAdd(sum, step, dot(1));
    sum = hn::MulAdd(sum, step, dot(0));
    const auto scales = hn::LoadU(HalfFloatTag(), key_scales + half * kHalfLanes);
    const DoubleVec unit =
        hn::Mul(hn::Set(d, static_cast<double>(query_unit)), hn::PromoteTo(d, scales));
    hn::StoreU(hn::Mul(sum, unit), d, sums + half * kHalfLanes);
  }
}

#if HWY_TARGET <= HWY_AVX3

// The two functions below are instructions that Highway 1.0 has no functions for.

// Returns a vector whose byte i is byte order[i] of `bytes`.
HWY_INLINE IntVec PermuteBytes(__m512i bytes, __m512i order) {
  IntVec permuted;
  asm("vpermb %1, %2, %0" : "=v"(permuted.raw) : "v"(bytes), "v"(order));
  return permuted;
}

// Returns sum[i] plus the dot product of the four unsigned bytes of a[i] and the four signed bytes
// of b[i], for each lane i.
HWY_INLINE IntVec AddDots(IntVec sum, IntVec a, IntVec b) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
  return sum;
}

// Scores kQueries queries from `query` on against kPanels panels from `panel` on.
template <int kQueries, int kPanels, typename Sum>
void VnniTile(const BlockView& block, std::int64_t panel, std::int64_t first_dim,
              const DigitQueries& queries, int query, Prefetcher& ahead, Sum* sums) {
  const IntTag d;
  // The order of bytes that puts the four components of each row in a group side by side. In a
  // panel, these components are kPanelRows bytes apart.
  alignas(64) static constexpr auto kByRow = [] {
    std::array<std::uint8_t, kGroupBytes> from{};
    for (std::size_t i = 0; i < from.size(); ++i) {
      from[i] = static_cast<std::uint8_t>(i % kGroup * kPanelRows + i / kGroup);
    }
    return from;
  }();
  const __m512i by_row = _mm512_load_si512(kByRow.data());
  IntVec dots[kQueries][kPanels][kQueryDigits];
  const std::byte* keys[kPanels];
  const std::uint32_t* digits[kQueries];
  HWY_UNROLL(4) for (int p = 0; p < kPanels; ++p) {
    keys[p] = block.panel(panel + p) + block.shape.key_offset(0, first_dim);
  }
  // One operand of the instruction is unsigned, so digits are stored plus 128. `too_much` sums the
  // products of 128 and the keys' integers. The end of this function subtracts it.
  const IntVec offset = hn::Set(d, static_cast<std::int32_t>(0x80808080));
  IntVec too_much[kPanels];
  HWY_UNROLL(4) for (int p = 0; p < kPanels; ++p) too_much[p] = hn::Zero(d);
  HWY_UNROLL(4) for (int q = 0; q < kQueries; ++q) {
    digits[q] = queries.digits(query + q);
    HWY_UNROLL(4) for (int p = 0; p < kPanels; ++p) {
      HWY_UNROLL(4) for (int i = 0; i < kQueryDigits; ++i) dots[q][p][i] = hn::Zero(d);
    }
  }
  const std::int64_t group_count = queries.group_count();
  for (std::int64_t group = 0; group < group_count; ++group) {
    ahead.Step();
    IntVec key[kPanels];
    HWY_UNROLL(4) for (int p = 0; p < kPanels; ++p) {
      key[p] = PermuteBytes(_mm512_loadu_si512(keys[p]), by_row);
      keys[p] += kGroupBytes;
      too_much[p] = AddDots(too_much[p], offset, key[p]);
    }
    HWY_UNROLL(4) for (int q = 0; q < kQueries; ++q) {
      HWY_UNROLL(4) for (int i = 0; i < kQueryDigits; ++i) {
        const IntVec digit = hn::Set(d, static_cast<std::int32_t>(digits[q][i]));
        HWY_UNROLL(4) for (int p = 0; p < kPanels; ++p) {
          dots[q][p][i] = AddDots(dots[q][p][i], digit, key[p]);
        }
      }
      digits[q] += kQueryDigits;
    }
  }
  HWY_UNROLL(4) for (int q = 0; q < kQueries; ++q) {
    HWY_UNROLL(4) for (int p = 0; p < kPanels; ++p) {
      HWY_UNROLL(4) for (int i = 0; i < kQueryDigits; ++i) {
        dots[q][p][i] = hn::Sub(dots[q][p][i], too_much[p]);
      }
      WriteSums(dots[q][p], queries.unit(query + q),
                KeyScalesOf(block.shape, block.panel(panel + p)),
                sums + (query + q) * kScratchStride + (panel + p) * kPanelRows);
    }
  }
}

template <int kQueries, int kPanels, typename Sum>
void VnniPanels(const BlockView& block, PanelRange panels, std::int64_t first_dim,
                const DigitQueries& queries, int query, Prefetcher& ahead, Sum* sums) {
  std::int64_t panel = panels.begin;
  for (; panel + kPanels <= panels.end; panel += kPanels) {
    VnniTile<kQueries, kPanels>(block, panel, first_dim, queries, query, ahead, sums);
  }
  for (; panel < panels.end; ++panel) {
    VnniTile<kQueries, 1>(block, panel, first_dim, queries, query, ahead, sums);
  }
}

template <typename Sum>
void ScoreByVnni(const BlockView& block, PanelRange panels, std::int64_t first_dim,
                 const DigitQueries& queries, const PanelPart& fetched, Sum* sums) {
  // Panels that are scored for all queries before the next ones. They are so few that they stay in
  // the first-level cache.
  constexpr std::int64_t kNearPanels = 4;
  const int count = queries.count();
  // A VnniTile takes up to four pairs of a query and a panel.
  const std::int64_t tiles = ((panels.end - panels.begin) * count + 3) / 4;
  Prefetcher ahead(fetched, tiles * queries.group_count());
  for (std::int64_t panel = panels.begin; panel < panels.end; panel += kNearPanels) {
    const PanelRange near{.begin = panel, .end = std::min(panel + kNearPanels, panels.end)};
    int q = 0;
    for (; q + 4 <= count; q += 4) {
      VnniPanels<4, 1>(block, near, first_dim, queries, q, ahead, sums);
    }
    for (; q + 2 <= count; q += 2) {
      VnniPanels<2, 2>(block, near, first_dim, queries, q, ahead, sums);
    }
    if (q < count) VnniPanels<1, 4>(block, near, first_dim, queries, q, ahead, sums);
  }
}

#endif

template <typename Sum>
void ScoreInLoops(const BlockView& block, PanelRange panels, std::int64_t first_dim,
                  const DigitQueries& queries, Sum* sums) {
  const IntTag d;
  for (int q = 0; q < queries.count(); ++q) {
    for (std::int64_t panel = panels.begin; panel < panels.end; ++panel) {
      const std::byte* keys = block.panel(panel) + block.shape.key_offset(0, first_dim);
      const float* scales = KeyScalesOf(block.shape, block.panel(panel));
      alignas(64) std::int32_t dots[kQueryDigits][kPanelRows] = {};
      for (std::int64_t dim = 0; dim < queries.key_dim(); ++dim) {
        const std::uint32_t* group = queries.digits(q) + dim / kGroup * kQueryDigits;
        for (std::int64_t i = 0; i < kQueryDigits; ++i) {
          const auto byte = reinterpret_cast<const std::uint8_t*>(group + i)[dim % kGroup];
          const std::int32_t digit = byte - 128;
          for (std::int64_t row = 0; row < kPanelRows; ++row) {
            dots[i][row] += digit * static_cast<std::int8_t>(keys[dim * kPanelRows + row]);
          }
        }
      }
      for (std::size_t row = 0; row < kPanelRows; row += kLanes) {
        IntVec of_rows[kQueryDigits];
        for (int i = 0; i < kQueryDigits; ++i) of_rows[i] = hn::Load(d, dots[i] + row);
        WriteSums(of_rows, queries.unit(q), scales + row,
                  sums + q * kScratchStride + panel * kPanelRows + row);
      }
    }
  }
}

template <typename Sum>
void ScoreAs(DotUnit unit, const BlockView& block, PanelRange panels, std::int64_t first_dim,
             const DigitQueries& queries, const PanelPart& fetched, Sum* sums) {
#if HWY_TARGET <= HWY_AVX3
  if (unit == DotUnit::kVnni) {
    return ScoreByVnni(block, panels, first_dim, queries, fetched, sums);
  }
#endif
  ScoreInLoops(block, panels, first_dim, queries, sums);
}

void ScoreFloatsOneTarget(DotUnit unit, const BlockView& block, PanelRange panels,
                          std::int64_t first_dim, const DigitQueries& queries,
                          const PanelPart& fetched, float* sums) {
  ScoreAs(unit, block, panels, first_dim, queries, fetched, sums);
}

void ScoreDoublesOneTarget(DotUnit unit, const BlockView& block, PanelRange panels,
                           std::int64_t first_dim, const DigitQueries& queries,
                           const PanelPart& fetched, double* sums) {
  ScoreAs(unit, block, panels, first_dim, queries, fetched, sums);
}

}  // namespace HWY_NAMESPACE
}  // namespace softlookup::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace softlookup::kernels {

HWY_EXPORT(PackQueryOneTarget);
HWY_EXPORT(ScoreFloatsOneTarget);
HWY_EXPORT(ScoreDoublesOneTarget);

bool VnniIsUsable() {
#if HWY_TARGETS & HWY_AVX3
  return __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vbmi");
#else
  return false;
#endif
}

bool KeysFitInt8Dots(float query_magnitude, float key_magnitude) {
  return IsModerate(query_magnitude) && IsModerate(key_magnitude);
}

// A query's component is off by at most half a unit, which is 2^-32 of the query's FixedPointBound.
// A key's component is, by definition, the float32 nearest to its integer times its scale. So the
// exact product of integer and scale differs from the component by at most 2^-24 of itself.
// Roundings in float64 are negligible beside these two errors.
//
// kInt8FloatError (int8_scores.h) is for float sums, which WriteSums forms as high * 2^16 + low.
// The dots are exact. `high`, the sum, and the sum's product with the key's scale are each off by
// at most 2^-24 of themselves. `low` is at most 128 * 257 sqrt(1024) times the norm of the key's
// integers. The norm of the query's integers is at least 2^29.9. So the rounding of `low` is below
// 2^-33 of the product of these norms.
double ScoreErrorInInt8(std::int64_t key_dim, float query_magnitude, float key_magnitude,
                        double norms) {
  return 0x1p-32 * static_cast<double>(key_dim) * FixedPointBound(query_magnitude) *
             static_cast<double>(key_magnitude) +
         0x1p-24 * norms;
}

void DigitQueries::Pack(const float* const* queries, int query_count, std::int64_t key_dim) {
  count_ = query_count;
  key_dim_ = key_dim;
  stride_ = static_cast<std::size_t>((key_dim + 15) / 16 * 16);  // Whole vectors of any width.
  if (digits_.size() < stride_ * static_cast<std::size_t>(query_count)) {
    digits_.resize(stride_ * static_cast<std::size_t>(query_count));
  }
  for (int q = 0; q < query_count; ++q) {
    units_[q] =
        HWY_DYNAMIC_DISPATCH(PackQueryOneTarget)(queries[q], key_dim, digits_.data() + q * stride_);
  }
}

void ScoreInt8Rows(DotUnit unit, const BlockView& block, PanelRange panels, std::int64_t first_dim,
                   const DigitQueries& queries, float* sums, const PanelPart& fetched) {
  HWY_DYNAMIC_DISPATCH(ScoreFloatsOneTarget)
  (unit, block, panels, first_dim, queries, fetched, sums);
}

void ScoreInt8Rows(DotUnit unit, const BlockView& block, PanelRange panels, std::int64_t first_dim,
                   const DigitQueries& queries, double* sums, const PanelPart& fetched) {
  HWY_DYNAMIC_DISPATCH(ScoreDoublesOneTarget)
  (unit, block, panels, first_dim, queries, fetched, sums);
}

}  // namespace softlookup::kernels
#endif  // HWY_ONCE
