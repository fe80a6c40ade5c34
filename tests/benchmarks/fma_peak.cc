#include "tests/benchmarks/fma_peak.h"

#include <atomic>
#include <cstddef>

#include "tests/benchmarks/pinned_threads.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/benchmarks/fma_peak.cc"
// clang-format off
#include "hwy/foreach_target.h"  // Comes first.
#include "hwy/highway.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace softlookup::testing {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Multiply-adds of vectors in one step, none of which waits for another one of its step. Two units
// with a latency of 5 cycles need 10, and 16 registers hold no more than 14 beside the constants.
constexpr std::int64_t kChains = 12;

float MultiplyAddOneTarget(std::int64_t step_count) {
  const hn::ScalableTag<float> d;
  // Every chain tends to 1, so none meets a slow number. They start apart, so none is redundant.
  const auto factor = hn::Set(d, 0.75f), addend = hn::Set(d, 0.25f);
  auto a = hn::Set(d, 2.0f), b = hn::Set(d, 3.0f), c = hn::Set(d, 4.0f), e = hn::Set(d, 5.0f);
  auto f = hn::Set(d, 6.0f), g = hn::Set(d, 7.0f), h = hn::Set(d, 8.0f), i = hn::Set(d, 9.0f);
  auto j = hn::Set(d, 10.f), k = hn::Set(d, 11.f), l = hn::Set(d, 12.f), m = hn::Set(d, 13.f);
  for (std::int64_t step = 0; step < step_count; ++step) {
    a = hn::MulAdd(a, factor, addend);
    b = hn::MulAdd(b, factor, addend);
    c = hn::MulAdd(c, factor, addend);
    e = hn::MulAdd(e, factor, addend);
    f = hn::MulAdd(f, factor, addend);
    g = hn::MulAdd(g, factor, addend);
    h = hn::MulAdd(h, factor, addend);
    i = hn::MulAdd(i, factor, addend);
    j = hn::MulAdd(j, factor, addend);
    k = hn::MulAdd(k, factor, addend);
    l = hn::MulAdd(l, factor, addend);
    m = hn::MulAdd(m, factor, addend);
  }
  a = hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, e)), hn::Add(hn::Add(f, g), hn::Add(h, i)));
  return hn::GetLane(hn::Add(a, hn::Add(hn::Add(j, k), hn::Add(l, m))));
}

double FlopPerStepOneTarget() {
  const hn::ScalableTag<float> d;
  return static_cast<double>(2 * kChains) * static_cast<double>(hn::Lanes(d));
}

}  // namespace HWY_NAMESPACE
}  // namespace softlookup::testing
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace softlookup::testing {
namespace {

constexpr std::int64_t kSteps = 1'000'000;

}  // namespace

HWY_EXPORT(MultiplyAddOneTarget);
HWY_EXPORT(FlopPerStepOneTarget);

FmaPeak::FmaPeak(int thread_count)
    : thread_count_(thread_count),
      flop_(thread_count * static_cast<double>(kSteps) *
            HWY_DYNAMIC_DISPATCH(FlopPerStepOneTarget)()) {}

double FmaPeak::Pass() {
  std::atomic<float> sink{0};  // The compiler must not leave the arithmetic out.
  return SecondsOnPinnedThreads(
      thread_count_, [&](int) { sink = HWY_DYNAMIC_DISPATCH(MultiplyAddOneTarget)(kSteps); });
}

}  // namespace softlookup::testing
#endif  // HWY_ONCE
