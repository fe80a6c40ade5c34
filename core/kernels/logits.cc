#include "core/kernels/logits.h"

#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/logits.cc"
// clang-format off
#include "hwy/foreach_target.h"  // Must come first.
#include "core/kernels/vectors-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace softlookup::kernels {
namespace HWY_NAMESPACE {

template <ScoreForm kForm>
HWY_INLINE DoubleVec Score(const LogitParams& params, DoubleVec sum, std::int64_t row) {
  const DoubleTag d;
  if constexpr (kForm == ScoreForm::kScaled) {
    return hn::Mul(sum, hn::Set(d, params.scale));
  } else if constexpr (kForm == ScoreForm::kCosine) {
    const DoubleVec norms =
        hn::Mul(hn::Set(d, params.query_norm), hn::LoadU(d, params.key_norms + row));
    return hn::IfThenElseZero(hn::Gt(norms, hn::Zero(d)), hn::Div(sum, norms));
  } else if constexpr (kForm == ScoreForm::kNegativeRoot) {
    return hn::Neg(hn::Sqrt(sum));
  } else {
    return hn::Neg(sum);
  }
}

template <ScoreForm kForm>
LogitSummary MakeLogitsOfForm(const LogitParams& params, PanelRange panels, RowRange rows,
                              double* HWY_RESTRICT sums, double* HWY_RESTRICT logits) {
  const DoubleTag d;
  const DoubleVec excluded = hn::Set(d, -std::numeric_limits<double>::infinity());
  const DoubleVec begin = hn::Set(d, static_cast<double>(rows.begin));
  const DoubleVec end = hn::Set(d, static_cast<double>(rows.end));
  const DoubleVec min_score = hn::Set(d, params.min_score);
  const DoubleVec inverse_temperature = hn::Set(d, params.inverse_temperature);
  const DoubleVec ln_decay = hn::Set(d, params.ln_decay);
  const DoubleVec age_of_row_0 = hn::Set(d, params.age_of_row_0);
  DoubleVec max = excluded;
  std::int64_t counted = 0;
  const std::int64_t end_row = panels.end * kPanelRows;
  for (std::int64_t r = panels.begin * kPanelRows; r < end_row; r += kHalfLanes) {
    const DoubleVec score = Score<kForm>(params, hn::LoadU(d, sums + r), r);
    hn::StoreU(score, d, sums + r);
    const DoubleVec row = hn::Iota(d, static_cast<double>(r));
    const DoubleVec age =
        params.ages == nullptr ? hn::Sub(age_of_row_0, row) : hn::LoadU(d, params.ages + r);
    const DoubleVec decay = hn::Mul(age, ln_decay);
    auto counts = hn::And(hn::And(hn::Ge(row, begin), hn::Lt(row, end)), hn::Ge(score, min_score));
    if (params.row_mask != nullptr) {
      // LoadMaskBits may read 8 bytes, so `bits` has 8.
      const std::uint64_t bits =
          params.row_mask[r / 64] >> (r % 64) & ((std::uint64_t{1} << kHalfLanes) - 1);
      counts = hn::And(counts, hn::LoadMaskBits(d, reinterpret_cast<const std::uint8_t*>(&bits)));
    }
    const DoubleVec logit =
        hn::IfThenElse(counts, hn::Add(hn::Mul(score, inverse_temperature), decay), excluded);
    hn::StoreU(logit, d, logits + r);
    max = hn::Max(max, logit);
    counted += static_cast<std::int64_t>(hn::CountTrue(d, counts));
  }
  return {.max = hn::GetLane(hn::MaxOfLanes(d, max)), .counted_rows = counted};
}

LogitSummary MakeLogitsOneTarget(const LogitParams& params, PanelRange panels, RowRange rows,
                                 double* sums, double* logits) {
  switch (params.form) {
    case ScoreForm::kScaled:
      return MakeLogitsOfForm<ScoreForm::kScaled>(params, panels, rows, sums, logits);
    case ScoreForm::kCosine:
      return MakeLogitsOfForm<ScoreForm::kCosine>(params, panels, rows, sums, logits);
    case ScoreForm::kNegativeRoot:
      return MakeLogitsOfForm<ScoreForm::kNegativeRoot>(params, panels, rows, sums, logits);
    case ScoreForm::kNegative:
      break;
  }
  return MakeLogitsOfForm<ScoreForm::kNegative>(params, panels, rows, sums, logits);
}

// Weights below exp(kLowestExponent) are set to 0.
constexpr float kLowestExponent = -87;

// Vectors, and rows, in one step of the loops over weights. The vectors of a step are independent,
// so that the CPU computes some while others wait for results.
constexpr int kStepVecs = 4;
constexpr std::int64_t kStepRows = kStepVecs * static_cast<std::int64_t>(kLanes);

static_assert(kStepRows % kPanelRows == 0);

// Replaces x in [kLowestExponent, 0] by exp(x), with a relative error of at most 9e-8. With an
// integer n and |r| <= ln 2 / 2, x is n ln 2 + r. A polynomial of degree 6 gives exp(r) with a
// relative error of at most 1.8e-8, besides its roundings.
template <int kVecs>
HWY_INLINE void Exp(FloatVec (&x)[kVecs]) {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> di;
  // Adding 1.5 * 2^23 rounds x / ln 2 to the integer n, and leaves n in the lowest bits of the sum.
  // `shift` also adds the exponent's bias of 127. So these bits are the exponent field of 2^n.
  const FloatVec shift = hn::Set(d, 0x1.8p23f + 127);
  FloatVec shifted[kVecs], p[kVecs];
  HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
    shifted[v] = hn::MulAdd(x[v], hn::Set(d, 1.44269504088896341f), shift);
  }
  // Subtracts n ln 2 from x, with ln 2 as a sum of two parts. The first part has so few bits that n
  // times this part is exact.
  for (const float part : {0.693359375f, -2.12194440e-4f}) {
    HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
      x[v] = hn::NegMulAdd(hn::Sub(shifted[v], shift), hn::Set(d, part), x[v]);
    }
  }
  HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) p[v] = hn::Set(d, 0.0013836835f);
  for (const float c : {0.0083748242f, 0.041668225f, 0.1666642f, 0.49999991f, 1.0f, 1.0f}) {
    HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) p[v] = hn::MulAdd(p[v], x[v], hn::Set(d, c));
  }
  HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
    x[v] = hn::Mul(p[v], hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, shifted[v]))));
  }
}

HWY_INLINE FloatVec LoadDemoted(const double* logits, DoubleVec subtract) {
  const DoubleTag dd;
  const FloatTag d;
  const HalfFloatTag dh;
  const auto low = hn::DemoteTo(dh, hn::Sub(hn::LoadU(dd, logits), subtract));
  const auto high = hn::DemoteTo(dh, hn::Sub(hn::LoadU(dd, logits + kHalfLanes), subtract));
  return hn::Combine(d, high, low);
}

// Adds up 16 sums, one for each row of a panel. Repeatedly adds the upper half to the lower half.
// The order is the same for every vector width.
HWY_INLINE double SumOfRows(const FloatVec* sums) {
  const FloatTag d;
  const DoubleTag dd;
  const HalfFloatTag dh;
  alignas(64) float rows[kPanelRows];
  HWY_UNROLL(4) for (std::size_t v = 0; v < kPanelRows / kLanes; ++v) {
    hn::Store(sums[v], d, rows + v * kLanes);
  }
  alignas(64) double totals[kPanelRows / 2];
  HWY_UNROLL(4) for (std::int64_t r = 0; r < kPanelRows / 2; r += kHalfLanes) {
    const DoubleVec lower = hn::PromoteTo(dd, hn::LoadU(dh, rows + r));
    const DoubleVec upper = hn::PromoteTo(dd, hn::LoadU(dh, rows + kPanelRows / 2 + r));
    hn::Store(hn::Add(lower, upper), dd, totals + r);
  }
  HWY_UNROLL(4) for (std::int64_t half = kPanelRows / 4; half > 0; half /= 2) {
    for (std::int64_t r = 0; r < half; ++r) totals[r] += totals[r + half];
  }
  return totals[0];
}

// Sums over all panels, one for each of the 16 places that a row can have in its panel: of weight,
// and of weight * (logit - max).
struct SumsOfPlaces {
  FloatVec weight[kVecsPerPanel];
  FloatVec weighted[kVecsPerPanel];
};

// Replaces kVecs vectors of logit - max in `weights` by the weights. Adds the terms of these
// rows to `sums`.
template <int kVecs>
HWY_INLINE void AddWeights(float* HWY_RESTRICT weights, SumsOfPlaces& sums) {
  const FloatTag d;
  const FloatVec lowest = hn::Set(d, kLowestExponent);
  FloatVec x[kVecs], weight[kVecs];
  HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
    x[v] = hn::LoadU(d, weights + v * kLanes);
    weight[v] = hn::Max(x[v], lowest);
  }
  Exp<kVecs>(weight);
  HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
    weight[v] = hn::IfThenElseZero(hn::Ge(x[v], lowest), weight[v]);
    hn::StoreU(weight[v], d, weights + v * kLanes);
    FloatVec& weight_sum = sums.weight[v % kVecsPerPanel];
    FloatVec& weighted_sum = sums.weighted[v % kVecsPerPanel];
    weight_sum = hn::Add(weight_sum, weight[v]);
    // A row that does not count has x = -infinity. Without the maximum, it would add 0 * -infinity,
    // a NaN.
    weighted_sum = hn::MulAdd(weight[v], hn::Max(x[v], lowest), weighted_sum);
  }
}

// Makes the weights of all rows of `panels`. exponent(r) must return logit - max for a vector of
// rows, of which r is the first.
template <typename Exponent>
HWY_INLINE SoftmaxSums MakeWeights(PanelRange panels, const Exponent& exponent,
                                   float* HWY_RESTRICT weights) {
  const FloatTag d;
  SumsOfPlaces sums;
  for (int v = 0; v < kVecsPerPanel; ++v) sums.weight[v] = sums.weighted[v] = hn::Zero(d);
  std::int64_t row = panels.begin * kPanelRows;
  const std::int64_t end_row = panels.end * kPanelRows;
  for (; row + kStepRows <= end_row; row += kStepRows) {
    HWY_UNROLL(4) for (std::int64_t r = row; r < row + kStepRows; r += kLanes) {
      hn::StoreU(exponent(r), d, weights + r);
    }
    AddWeights<kStepVecs>(weights + row, sums);
  }
  for (; row < end_row; row += kPanelRows) {
    for (std::int64_t r = row; r < row + kPanelRows; r += kLanes) {
      hn::StoreU(exponent(r), d, weights + r);
    }
    AddWeights<kVecsPerPanel>(weights + row, sums);
  }
  return {.weight = SumOfRows(sums.weight), .weighted = SumOfRows(sums.weighted)};
}

SoftmaxSums MakeSoftmaxWeightsOneTarget(const double* HWY_RESTRICT logits, double max,
                                        PanelRange panels, float* HWY_RESTRICT weights) {
  const DoubleVec max_logit = hn::Set(DoubleTag(), max);
  return MakeWeights(
      panels, [=](std::int64_t r) HWY_ATTR { return LoadDemoted(logits + r, max_logit); }, weights);
}

SumRange RangeOfSumsOneTarget(PanelRange panels, const float* HWY_RESTRICT sums) {
  const FloatTag d;
  // Several independent vectors. With a single vector, each step would wait for the result of the
  // step before.
  FloatVec min[kStepVecs], max[kStepVecs];
  HWY_UNROLL(4) for (int v = 0; v < kStepVecs; ++v) {
    min[v] = hn::Set(d, std::numeric_limits<float>::infinity());
    max[v] = hn::Neg(min[v]);
  }
  std::int64_t row = panels.begin * kPanelRows;
  const std::int64_t end_row = panels.end * kPanelRows;
  for (; row + kStepRows <= end_row; row += kStepRows) {
    HWY_UNROLL(4) for (int v = 0; v < kStepVecs; ++v) {
      const FloatVec sum = hn::LoadU(d, sums + row + v * kLanes);
      min[v] = hn::Min(min[v], sum);
      max[v] = hn::Max(max[v], sum);
    }
  }
  for (; row < end_row; row += kLanes) {
    const FloatVec sum = hn::LoadU(d, sums + row);
    min[0] = hn::Min(min[0], sum);
    max[0] = hn::Max(max[0], sum);
  }
  HWY_UNROLL(4) for (int v = 1; v < kStepVecs; ++v) {
    min[0] = hn::Min(min[0], min[v]);
    max[0] = hn::Max(max[0], max[v]);
  }
  return {.min = hn::GetLane(hn::MinOfLanes(d, min[0])),
          .max = hn::GetLane(hn::MaxOfLanes(d, max[0]))};
}

SoftmaxSums MakeSoftmaxWeightsOfSumsOneTarget(const float* HWY_RESTRICT sums, float factor,
                                              float best, PanelRange panels,
                                              float* HWY_RESTRICT weights) {
  const FloatTag d;
  const FloatVec factors = hn::Set(d, factor), best_sum = hn::Set(d, best);
  return MakeWeights(
      panels,
      [=](std::int64_t r)
          HWY_ATTR { return hn::Mul(factors, hn::Sub(hn::LoadU(d, sums + r), best_sum)); },
      weights);
}

}  // namespace HWY_NAMESPACE
}  // namespace softlookup::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace softlookup::kernels {

HWY_EXPORT(MakeLogitsOneTarget);
HWY_EXPORT(MakeSoftmaxWeightsOneTarget);
HWY_EXPORT(RangeOfSumsOneTarget);
HWY_EXPORT(MakeSoftmaxWeightsOfSumsOneTarget);

LogitSummary MakeLogits(const LogitParams& params, PanelRange panels, RowRange rows, double* sums,
                        double* logits) {
  return HWY_DYNAMIC_DISPATCH(MakeLogitsOneTarget)(params, panels, rows, sums, logits);
}

SoftmaxSums MakeSoftmaxWeights(const double* logits, double max, PanelRange panels,
                               float* weights) {
  return HWY_DYNAMIC_DISPATCH(MakeSoftmaxWeightsOneTarget)(logits, max, panels, weights);
}

SumRange RangeOfSums(PanelRange panels, const float* sums) {
  return HWY_DYNAMIC_DISPATCH(RangeOfSumsOneTarget)(panels, sums);
}

SoftmaxSums MakeSoftmaxWeightsOfSums(const float* sums, double factor, float best,
                                     PanelRange panels, float* weights) {
  return HWY_DYNAMIC_DISPATCH(MakeSoftmaxWeightsOfSumsOneTarget)(sums, static_cast<float>(factor),
                                                                 best, panels, weights);
}

}  // namespace softlookup::kernels
#endif  // HWY_ONCE
