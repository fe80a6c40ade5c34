#include "core/kernels/panel_bounds.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/panel_bounds.cc"
// clang-format off
#include "hwy/foreach_target.h"  // Must come first.
#include "core/kernels/vectors-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace softlookup::kernels {
namespace HWY_NAMESPACE {

using CodeTag = hn::RebindToSigned<FloatTag>;
using CodeVec = hn::Vec<CodeTag>;

// The arguments of BoundPanels.
struct BoundCall {
  const SketchView& sketch;
  const SketchQueries& queries;
  const BoundFactors* factors;  // In exponent units for kMass without a root.
  const BoundTerms& terms;
  float bias_factor;              // The exponent units in a nat for kMass without a root, else 1.
  const float* exponent_offsets;  // For each query. Read for kMass with a root only.
  float root_factor;              // What a root is multiplied by. 0 if the bound is no root.
  std::int64_t stride;
};

// PowerAbove() makes 2^x from bits. It takes x as the float 2^23 + 2^15 (x + 127), whose lowest 23
// bits are the integer 2^15 (x + 127). An exponent unit is 1 in this float, so 1 in x is
// kExponentUnit units. Shifted left by 8 bits, the integer is a float32 whose exponent is x rounded
// down. Its mantissa is linear between two powers of two, so the float32 is 2^x or up to 6.15 %
// more.
constexpr float kExponentUnit = 0x1p15f;
constexpr double kExponentOfZero = 0x1p23 + 127 * 0x1p15;
// An exponent has five roundings, each at most half a unit of a float below 2^24. Together they are
// below kExponentRounding nats.
constexpr double kExponentRounding = 0x1p-13;

HWY_INLINE FloatVec PowerAbove(FloatVec exponent) {
  const FloatTag d;
  const FloatVec lowest = hn::Set(d, 0x1p23f + kExponentUnit);
  const FloatVec highest = hn::Set(d, 0x1p23f + 255 * kExponentUnit);  // Infinity.
  const hn::RebindToUnsigned<FloatTag> bits;
  return hn::BitCast(
      d, hn::ShiftLeft<8>(hn::BitCast(bits, hn::Max(lowest, hn::Min(exponent, highest)))));
}

// Returns the bounds of the rows in the vector that begins at `lane` of `slice`. For kMass, returns
// exp(bound - reference) as PowerAbove() makes it. `dots` has, for each row, the dot product of its
// codes and the query's.
template <PanelBound kForm, bool kRoot>
HWY_INLINE FloatVec BoundOfRows(const BoundCall& call, std::int64_t slice, std::size_t lane,
                                int query, CodeVec dots) {
  const FloatTag d;
  const BoundFactors& factor = call.factors[query];
  const BoundTerms& terms = call.terms;
  const FloatVec product =
      hn::Mul(hn::ConvertTo(d, dots), hn::LoadU(d, terms.scales.at(slice) + lane));
  FloatVec bound = hn::Set(d, factor.offset);
  if (terms.bias.first != nullptr) {
    const FloatVec bias = hn::LoadU(d, terms.bias.at(slice) + lane);
    bound = hn::MulAdd(hn::Set(d, call.bias_factor), bias, bound);
  }
  if (terms.norms.first != nullptr) {
    const FloatVec norm = hn::LoadU(d, terms.norms.at(slice) + lane);
    bound = hn::MulAdd(hn::Set(d, factor.norm), norm, bound);
  }
  bound = hn::MulAdd(hn::Set(d, factor.error), hn::LoadU(d, terms.errors.at(slice) + lane), bound);
  bound = hn::MulAdd(hn::Set(d, factor.product), product, bound);
  if constexpr (kRoot) {
    const FloatVec root = hn::Sqrt(hn::Max(hn::Zero(d), hn::Neg(bound)));
    const FloatVec root_factor = hn::Set(d, call.root_factor);
    bound = kForm == PanelBound::kMass
                ? hn::NegMulAdd(root, root_factor, hn::Set(d, call.exponent_offsets[query]))
                : hn::Neg(hn::Mul(root, root_factor));
  }
  return kForm == PanelBound::kMass ? PowerAbove(bound) : bound;
}

template <PanelBound kForm>
HWY_INLINE FloatVec Joined(FloatVec a, FloatVec b) {
  return kForm == PanelBound::kMass ? hn::Add(a, b) : hn::Max(a, b);
}

// The bounds of a span's panels for one query, joined over the slices so far. In a span of n
// panels, lane l belongs to panel l % n.
struct PanelBounds {
  FloatVec vecs[kVecsPerPanel];
};

template <PanelBound kForm>
HWY_INLINE void Clear(PanelBounds* found, int query_count) {
  const FloatTag d;
  const float none = kForm == PanelBound::kMass ? 0 : -std::numeric_limits<float>::infinity();
  for (int q = 0; q < query_count; ++q) {
    for (int v = 0; v < kVecsPerPanel; ++v) found[q].vecs[v] = hn::Set(d, none);
  }
}

// Writes the bounds of the span's panels. Joins the lanes that belong to the same panel.
template <PanelBound kForm>
HWY_INLINE void WriteSpan(const BoundCall& call, std::int64_t begin, std::int64_t span,
                          const PanelBounds* found, float* HWY_RESTRICT bounds) {
  const FloatTag d;
  bounds += begin;
  for (int q = 0; q < call.queries.count(); ++q, bounds += call.stride) {
    if (span == kPanelRows) {
      for (int v = 0; v < kVecsPerPanel; ++v) hn::StoreU(found[q].vecs[v], d, bounds + v * kLanes);
      continue;
    }
    alignas(64) float lanes[kPanelRows];
    for (int v = 0; v < kVecsPerPanel; ++v) hn::Store(found[q].vecs[v], d, lanes + v * kLanes);
    for (std::int64_t panel = 0; panel < span; ++panel) {
      float joined = lanes[panel];
      for (std::int64_t lane = panel + span; lane < kPanelRows; lane += span) {
        joined = kForm == PanelBound::kMass ? joined + lanes[lane] : std::max(joined, lanes[lane]);
      }
      bounds[panel] = joined;
    }
  }
}

#if HWY_TARGET <= HWY_AVX2

// Adds to each lane of `sum` the dot product of four unsigned bytes of `key` and four signed bytes
// of `query`. Highway 1.0 has no function for this.
template <bool kVnni>
HWY_INLINE CodeVec AddCodeDots(CodeVec sum, CodeVec key, CodeVec query) {
#if HWY_TARGET <= HWY_AVX3
  if constexpr (kVnni) {
    asm("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(key.raw), "v"(query.raw));
    return sum;
  } else {
    const __m512i pairs = _mm512_maddubs_epi16(key.raw, query.raw);
    return hn::Add(sum, CodeVec{_mm512_madd_epi16(pairs, _mm512_set1_epi16(1))});
  }
#else
  const __m256i pairs = _mm256_maddubs_epi16(key.raw, query.raw);
  return hn::Add(sum, CodeVec{_mm256_madd_epi16(pairs, _mm256_set1_epi16(1))});
#endif
}

// Joins the bounds of the rows in kSlices slices, from `slice` on, into `found`. found[q] is for
// query `query` + q, for q < kQueries.
template <PanelBound kForm, bool kRoot, bool kVnni, int kQueries, int kSlices>
HWY_INLINE void BoundTile(const BoundCall& call, std::int64_t slice, int query,
                          PanelBounds* HWY_RESTRICT found) {
  const CodeTag d;
  constexpr int kVecs = kSlices * kVecsPerPanel;
  CodeVec dots[kQueries][kVecs];
  const std::uint32_t* codes[kQueries];
  HWY_UNROLL(16) for (int q = 0; q < kQueries; ++q) {
    codes[q] = call.queries.codes(query + q);
    const CodeVec excess = hn::Set(d, -call.queries.excess(query + q));
    HWY_UNROLL(16) for (int v = 0; v < kVecs; ++v) dots[q][v] = excess;
  }
  const auto* keys = reinterpret_cast<const std::int32_t*>(call.sketch.slice(slice));
  const std::int64_t slice_words = call.sketch.slice_bytes() / 4;
  const std::int64_t group_count = call.sketch.group_count();
  for (std::int64_t group = 0; group < group_count; ++group, keys += kPanelRows) {
    CodeVec key[kVecs];
    HWY_UNROLL(16) for (int v = 0; v < kVecs; ++v) {
      key[v] = hn::LoadU(d, keys + v / kVecsPerPanel * slice_words +
                                v % kVecsPerPanel * static_cast<std::int64_t>(kLanes));
    }
    HWY_UNROLL(16) for (int q = 0; q < kQueries; ++q) {
      const CodeVec code = hn::Set(d, static_cast<std::int32_t>(codes[q][group]));
      HWY_UNROLL(16) for (int v = 0; v < kVecs; ++v) {
        dots[q][v] = AddCodeDots<kVnni>(dots[q][v], key[v], code);
      }
    }
  }
  HWY_UNROLL(16) for (int q = 0; q < kQueries; ++q) {
    HWY_UNROLL(16) for (int v = 0; v < kVecs; ++v) {
      const int of_panel = v % kVecsPerPanel;
      found[q].vecs[of_panel] =
          Joined<kForm>(found[q].vecs[of_panel],
                        BoundOfRows<kForm, kRoot>(call, slice + v / kVecsPerPanel,
                                                  of_panel * kLanes, query + q, dots[q][v]));
    }
  }
}

// Does what BoundTile does, for all queries. The slices stay in the first-level cache meanwhile.
template <PanelBound kForm, bool kRoot, bool kVnni, int kSlices>
HWY_INLINE void BoundSlices(const BoundCall& call, std::int64_t slice, PanelBounds* found) {
  const int count = call.queries.count();
  int q = 0;
  for (; q + 4 <= count; q += 4) {
    BoundTile<kForm, kRoot, kVnni, 4, kSlices>(call, slice, q, found + q);
  }
  for (; q < count; ++q) BoundTile<kForm, kRoot, kVnni, 1, kSlices>(call, slice, q, found + q);
}

// Joins the bounds of the rows in the slices [slice, end) into `found`, for all queries.
template <PanelBound kForm, bool kRoot, bool kVnni>
HWY_INLINE void BoundSpan(const BoundCall& call, std::int64_t slice, std::int64_t end,
                          PanelBounds* found) {
  // Takes four slices at a time if the registers hold their sums beside the operands.
  if (HWY_TARGET <= HWY_AVX3 || call.queries.count() == 1) {
    for (; slice + 4 <= end; slice += 4) BoundSlices<kForm, kRoot, kVnni, 4>(call, slice, found);
  }
  for (; slice < end; ++slice) BoundSlices<kForm, kRoot, kVnni, 1>(call, slice, found);
}

#else

// Joins the bounds of the rows in a slice into `found`, for one query.
template <PanelBound kForm, bool kRoot>
HWY_INLINE void BoundSlice(const BoundCall& call, std::int64_t slice, int query,
                           PanelBounds& found) {
  const auto* codes = reinterpret_cast<const std::int8_t*>(call.queries.codes(query));
  const auto* keys = reinterpret_cast<const std::uint8_t*>(call.sketch.slice(slice));
  alignas(64) std::int32_t dots[kPanelRows];
  std::fill_n(dots, kPanelRows, -call.queries.excess(query));
  for (std::int64_t dim = 0; dim < call.sketch.group_count() * SketchView::kGroup; ++dim) {
    const std::uint8_t* column =
        keys + dim / SketchView::kGroup * SketchView::kGroupBytes + dim % SketchView::kGroup;
    for (std::int64_t row = 0; row < kPanelRows; ++row) {
      dots[row] += codes[dim] * column[row * SketchView::kGroup];
    }
  }
  for (int v = 0; v < kVecsPerPanel; ++v) {
    const std::size_t lane = v * kLanes;
    const FloatVec bound =
        BoundOfRows<kForm, kRoot>(call, slice, lane, query, hn::Load(CodeTag(), dots + lane));
    found.vecs[v] = Joined<kForm>(found.vecs[v], bound);
  }
}

// Joins the bounds of the rows in the slices [begin, end) into `found`, for all queries.
template <PanelBound kForm, bool kRoot, bool kVnni>
HWY_INLINE void BoundSpan(const BoundCall& call, std::int64_t begin, std::int64_t end,
                          PanelBounds* found) {
  for (int q = 0; q < call.queries.count(); ++q) {
    for (std::int64_t slice = begin; slice < end; ++slice) {
      BoundSlice<kForm, kRoot>(call, slice, q, found[q]);
    }
  }
}

#endif

template <PanelBound kForm, bool kRoot, bool kVnni>
void BoundByBytes(const BoundCall& call, float* bounds) {
  PanelBounds found[kTileQueries];
  std::int64_t span = 0;
  for (std::int64_t begin = 0; begin < call.sketch.panel_count; begin += span) {
    span = call.sketch.SpanFrom(begin);
    Clear<kForm>(found, call.queries.count());
    BoundSpan<kForm, kRoot, kVnni>(call, begin, begin + span, found);
    WriteSpan<kForm>(call, begin, span, found, bounds);
  }
}

template <bool kVnni, bool kRoot>
void BoundInForm(PanelBound form, const BoundCall& call, float* bounds) {
  switch (form) {
    case PanelBound::kLargest:
      return BoundByBytes<PanelBound::kLargest, kRoot, kVnni>(call, bounds);
    case PanelBound::kMass:
      return BoundByBytes<PanelBound::kMass, kRoot, kVnni>(call, bounds);
  }
}

template <bool kVnni>
void BoundAs(PanelBound form, const BoundCall& call, float* bounds) {
  if (call.terms.root_divisor > 0) return BoundInForm<kVnni, true>(form, call, bounds);
  BoundInForm<kVnni, false>(form, call, bounds);
}

void BoundPanelsOneTarget(bool vnni, PanelBound form, const SketchView& sketch,
                          const SketchQueries& queries, const BoundFactors* factors,
                          const float* references, const BoundTerms& terms, std::int64_t stride,
                          float* bounds) {
  // The exponent units in a nat. A nat adds log2(e) to the x of PowerAbove().
  constexpr double kUnit = std::numbers::log2e * kExponentUnit;
  const bool is_mass = form == PanelBound::kMass, is_root = terms.root_divisor > 0;
  // Without a root, the bound is linear in its factors, so the factors are converted to exponent
  // units here, once for all rows.
  const bool is_in_exponents = is_mass && !is_root;
  std::array<BoundFactors, kTileQueries> scaled;
  std::array<float, kTileQueries> exponent_offsets;
  for (int q = 0; q < queries.count() && is_mass; ++q) {
    const BoundFactors& factor = factors[q];
    const double offset = (kExponentRounding - references[q]) * kUnit + kExponentOfZero;
    exponent_offsets[q] = static_cast<float>(offset);
    if (!is_in_exponents) continue;
    scaled[q] = {.product = static_cast<float>(factor.product * kUnit),
                 .error = static_cast<float>(factor.error * kUnit),
                 .norm = static_cast<float>(factor.norm * kUnit),
                 .offset = static_cast<float>(factor.offset * kUnit + offset)};
  }
  const BoundCall call = {
      .sketch = sketch,
      .queries = queries,
      .factors = is_in_exponents ? scaled.data() : factors,
      .terms = terms,
      .bias_factor = is_in_exponents ? static_cast<float>(kUnit) : 1,
      .exponent_offsets = exponent_offsets.data(),
      .root_factor = is_root ? static_cast<float>((is_mass ? kUnit : 1) / terms.root_divisor) : 0,
      .stride = stride};
#if HWY_TARGET <= HWY_AVX3
  if (vnni) return BoundAs<true>(form, call, bounds);
#endif
  BoundAs<false>(form, call, bounds);
}

}  // namespace HWY_NAMESPACE
}  // namespace softlookup::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace softlookup::kernels {
namespace {

HWY_EXPORT(BoundPanelsOneTarget);

// Returns true if the CPU has AVX-512 VNNI.
bool UsesVnni() {
#if HWY_TARGETS & HWY_AVX3
  return __builtin_cpu_supports("avx512vnni") != 0;
#else
  return false;
#endif
}

}  // namespace

void SketchQueries::Pack(const float* const* queries, int query_count, std::int64_t key_dim) {
  count_ = query_count;
  stride_ = static_cast<std::size_t>((key_dim + 3) / 4);
  codes_.assign(stride_ * static_cast<std::size_t>(query_count), 0);
  for (int q = 0; q < query_count; ++q) {
    const float* query = queries[q];
    float magnitude = 0;
    for (std::int64_t i = 0; i < key_dim; ++i) magnitude = std::max(magnitude, std::abs(query[i]));
    const double unit = static_cast<double>(magnitude) / kQueryCodeMax;
    auto* codes =
        reinterpret_cast<std::int8_t*>(codes_.data() + static_cast<std::size_t>(q) * stride_);
    double norm_square = 0, error_square = 0;
    std::int32_t sum = 0;
    units_[q] = static_cast<float>(unit);
    for (std::int64_t i = 0; i < key_dim && magnitude > 0; ++i) {
      const double code = std::nearbyint(static_cast<double>(query[i]) / unit);
      codes[i] = static_cast<std::int8_t>(code);
      sum += codes[i];
      const double coarse = code * static_cast<double>(units_[q]);
      norm_square += coarse * coarse;
      error_square += (query[i] - coarse) * (query[i] - coarse);
    }
    const auto above = [](double square) {
      const float root = static_cast<float>(std::sqrt(square)) * (1 + 0x1p-20f);
      // The factor cannot raise a subnormal root, so nextafter() raises the root once more.
      return square > 0 ? std::nextafter(root, std::numeric_limits<float>::infinity()) : 0;
    };
    norms_[q] = above(norm_square);
    errors_[q] = above(error_square);
    excesses_[q] = 128 * sum;
  }
}

SketchQueries SketchQueries::Some(int begin, int end) const {
  SketchQueries some;
  some.count_ = end - begin;
  some.stride_ = stride_;
  some.codes_.assign(codes(begin), codes(end));
  const auto copy = [begin, end](const auto& from, auto& to) {
    std::copy(from.begin() + begin, from.begin() + end, to.begin());
  };
  copy(units_, some.units_);
  copy(norms_, some.norms_);
  copy(errors_, some.errors_);
  copy(excesses_, some.excesses_);
  return some;
}

void BoundPanels(PanelBound form, const SketchView& sketch, const SketchQueries& queries,
                 const BoundFactors* factors, const float* references, const BoundTerms& terms,
                 std::int64_t stride, float* bounds) {
  static const bool vnni = UsesVnni();
  HWY_DYNAMIC_DISPATCH(BoundPanelsOneTarget)
  (vnni, form, sketch, queries, factors, references, terms, stride, bounds);
}

}  // namespace softlookup::kernels
#endif  // HWY_ONCE
