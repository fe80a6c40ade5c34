#include "core/kernels/panel_bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>

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
  const BoundFactors* factors;
  const float* references;
  const BoundTerms& terms;
  std::int64_t stride;
};

// Returns 2^x for x = exponent / 2^23 - 127, or up to 6 % more: the bits of a float32 are its
// exponent and, linearly between two powers, its mantissa.
HWY_INLINE FloatVec PowerAbove(FloatVec exponent) {
  const FloatTag d;
  const FloatVec lowest = hn::Set(d, 0x1p23f);
  const FloatVec highest = hn::Set(d, 255 * 0x1p23f);  // Infinity.
  return hn::BitCast(d, hn::ConvertTo(CodeTag(), hn::Max(lowest, hn::Min(exponent, highest))));
}

// Bounds one panel for one query. dots[v] has the products of codes of kLanes rows.
template <PanelBound kForm>
HWY_INLINE float BoundOfPanel(const BoundCall& call, std::int64_t panel, int query,
                              const CodeVec* dots) {
  const FloatTag d;
  const BoundFactors& factor = call.factors[query];
  const BoundTerms& terms = call.terms;
  const CodeVec excess = hn::Set(CodeTag(), call.queries.excess(query));
  FloatVec result =
      hn::Set(d, kForm == PanelBound::kMass ? 0.0f : -std::numeric_limits<float>::infinity());
  HWY_UNROLL(2) for (int v = 0; v < kVecsPerPanel; ++v) {
    const std::size_t lane = v * kLanes;
    const FloatVec dot = hn::ConvertTo(d, hn::Sub(dots[v], excess));
    const FloatVec product = hn::Mul(dot, hn::LoadU(d, terms.scales.at(panel) + lane));
    FloatVec bound = hn::Set(d, factor.offset);
    if (terms.bias.first != nullptr) {
      bound = hn::Add(bound, hn::LoadU(d, terms.bias.at(panel) + lane));
    }
    if (terms.norms.first != nullptr) {
      const FloatVec norm = hn::LoadU(d, terms.norms.at(panel) + lane);
      bound = hn::MulAdd(hn::Set(d, factor.norm), norm, bound);
    }
    bound =
        hn::MulAdd(hn::Set(d, factor.error), hn::LoadU(d, terms.errors.at(panel) + lane), bound);
    bound = hn::MulAdd(hn::Set(d, factor.product), product, bound);
    if (terms.root_divisor > 0) {
      const FloatVec root = hn::Sqrt(hn::Max(hn::Zero(d), hn::Neg(bound)));
      bound = hn::Neg(hn::Mul(root, hn::Set(d, 1 / terms.root_divisor)));
    }
    if constexpr (kForm == PanelBound::kLargest) {
      result = hn::Max(result, bound);
    } else {
      // The exponent has fewer digits than the bound, so it is raised by more than its rounding.
      constexpr float kLog2E = 1.44269504f;
      const FloatVec above =
          hn::Add(hn::Sub(bound, hn::Set(d, call.references[query])), hn::Set(d, 0x1p-14f));
      const FloatVec exponent =
          hn::MulAdd(above, hn::Set(d, kLog2E * 0x1p23f), hn::Set(d, 127 * 0x1p23f));
      result = hn::Add(result, PowerAbove(exponent));
    }
  }
  return hn::GetLane(kForm == PanelBound::kLargest ? hn::MaxOfLanes(d, result)
                                                   : hn::SumOfLanes(d, result));
}

#if HWY_TARGET <= HWY_AVX2

// Adds the dot product of four unsigned bytes of `key` and four signed bytes of `query` to each
// lane of `sum`. Highway has no function for this.
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

// Bounds kPanels panels from `panel` on for kQueries queries from `query` on.
template <PanelBound kForm, bool kVnni, int kQueries, int kPanels>
HWY_INLINE void BoundTile(const BoundCall& call, std::int64_t panel, int query,
                          float* HWY_RESTRICT bounds) {
  const CodeTag d;
  constexpr int kVecs = kPanels * kVecsPerPanel;
  CodeVec dots[kQueries][kVecs];
  const std::uint32_t* codes[kQueries];
  HWY_UNROLL(16) for (int q = 0; q < kQueries; ++q) {
    codes[q] = call.queries.codes(query + q);
    HWY_UNROLL(16) for (int v = 0; v < kVecs; ++v) dots[q][v] = hn::Zero(d);
  }
  const auto* keys = reinterpret_cast<const std::int32_t*>(call.sketch.panel(panel));
  const std::int64_t panel_words = call.sketch.panel_bytes() / 4;
  const std::int64_t group_count = call.sketch.group_count();
  for (std::int64_t group = 0; group < group_count; ++group, keys += kPanelRows) {
    CodeVec key[kVecs];
    HWY_UNROLL(16) for (int v = 0; v < kVecs; ++v) {
      key[v] = hn::LoadU(d, keys + v / kVecsPerPanel * panel_words +
                                v % kVecsPerPanel * static_cast<std::int64_t>(kLanes));
    }
    HWY_UNROLL(16) for (int q = 0; q < kQueries; ++q) {
      const CodeVec code = hn::Set(d, static_cast<std::int32_t>(codes[q][group]));
      HWY_UNROLL(16) for (int v = 0; v < kVecs; ++v) {
        dots[q][v] = AddCodeDots<kVnni>(dots[q][v], key[v], code);
      }
    }
  }
  HWY_UNROLL(16) for (int p = 0; p < kPanels; ++p) {
    HWY_UNROLL(16) for (int q = 0; q < kQueries; ++q) {
      bounds[(query + q) * call.stride + p] =
          BoundOfPanel<kForm>(call, panel + p, query + q, dots[q] + p * kVecsPerPanel);
    }
  }
}

template <PanelBound kForm, bool kVnni, int kPanels>
void BoundForQueries(const BoundCall& call, std::int64_t panel, float* bounds) {
  const int count = call.queries.count();
  int q = 0;
  for (; q + 4 <= count; q += 4) BoundTile<kForm, kVnni, 4, kPanels>(call, panel, q, bounds);
  for (; q < count; ++q) BoundTile<kForm, kVnni, 1, kPanels>(call, panel, q, bounds);
}

template <PanelBound kForm, bool kVnni>
void BoundByBytes(const BoundCall& call, PanelRange panels, float* bounds) {
#if HWY_TARGET <= HWY_AVX3
  constexpr int kPanels = 4;
#else
  constexpr int kPanels = 1;
#endif
  std::int64_t panel = panels.begin;
  if (call.queries.count() == 1) {
    for (; panel + 4 <= panels.end; panel += 4) {
      BoundTile<kForm, kVnni, 1, 4>(call, panel, 0, bounds + (panel - panels.begin));
    }
  }
  for (; panel + kPanels <= panels.end; panel += kPanels) {
    BoundForQueries<kForm, kVnni, kPanels>(call, panel, bounds + (panel - panels.begin));
  }
  for (; panel < panels.end; ++panel) {
    BoundForQueries<kForm, kVnni, 1>(call, panel, bounds + (panel - panels.begin));
  }
}

#else

template <PanelBound kForm, bool kVnni>
void BoundByBytes(const BoundCall& call, PanelRange panels, float* bounds) {
  for (int q = 0; q < call.queries.count(); ++q) {
    const auto* codes = reinterpret_cast<const std::int8_t*>(call.queries.codes(q));
    for (std::int64_t panel = panels.begin; panel < panels.end; ++panel) {
      const auto* keys = reinterpret_cast<const std::uint8_t*>(call.sketch.panel(panel));
      alignas(64) std::int32_t dots[kPanelRows] = {};
      for (std::int64_t dim = 0; dim < call.sketch.group_count() * SketchView::kGroup; ++dim) {
        const std::uint8_t* column =
            keys + dim / SketchView::kGroup * SketchView::kGroupBytes + dim % SketchView::kGroup;
        for (std::int64_t row = 0; row < kPanelRows; ++row) {
          dots[row] += codes[dim] * column[row * SketchView::kGroup];
        }
      }
      CodeVec of_rows[kVecsPerPanel];
      for (int v = 0; v < kVecsPerPanel; ++v) {
        of_rows[v] = hn::Load(CodeTag(), dots + v * kLanes);
      }
      bounds[q * call.stride + panel - panels.begin] = BoundOfPanel<kForm>(call, panel, q, of_rows);
    }
  }
}

#endif

template <bool kVnni>
void BoundAs(PanelBound form, const BoundCall& call, PanelRange panels, float* bounds) {
  switch (form) {
    case PanelBound::kLargest:
      return BoundByBytes<PanelBound::kLargest, kVnni>(call, panels, bounds);
    case PanelBound::kMass:
      return BoundByBytes<PanelBound::kMass, kVnni>(call, panels, bounds);
  }
}

void BoundPanelsOneTarget(bool vnni, PanelBound form, const SketchView& sketch, PanelRange panels,
                          const SketchQueries& queries, const BoundFactors* factors,
                          const float* references, const BoundTerms& terms, std::int64_t stride,
                          float* bounds) {
  const BoundCall call = {sketch, queries, factors, references, terms, stride};
#if HWY_TARGET <= HWY_AVX3
  if (vnni) return BoundAs<true>(form, call, panels, bounds);
#endif
  BoundAs<false>(form, call, panels, bounds);
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
      // The smallest floats have too few digits for a factor.
      return square > 0 ? std::nextafter(root, std::numeric_limits<float>::infinity()) : 0;
    };
    norms_[q] = above(norm_square);
    errors_[q] = above(error_square);
    excesses_[q] = 128 * sum;
  }
}

void BoundPanels(PanelBound form, const SketchView& sketch, PanelRange panels,
                 const SketchQueries& queries, const BoundFactors* factors, const float* references,
                 const BoundTerms& terms, std::int64_t stride, float* bounds) {
  static const bool vnni = UsesVnni();
  HWY_DYNAMIC_DISPATCH(BoundPanelsOneTarget)
  (vnni, form, sketch, panels, queries, factors, references, terms, stride, bounds);
}

}  // namespace softlookup::kernels
#endif  // HWY_ONCE
