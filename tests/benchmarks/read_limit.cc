#include "tests/benchmarks/read_limit.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/benchmarks/pinned_threads.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/benchmarks/read_limit.cc"
// clang-format off
#include "hwy/foreach_target.h"  // Comes first.
#include "hwy/highway.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace softlookup::testing {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// `count` is a multiple of 512, as pages are of any machine's eight vectors.
std::uint64_t ReadOneTarget(const std::uint64_t* HWY_RESTRICT words, std::size_t count) {
  const hn::CappedTag<std::uint64_t, 64> d;
  const std::size_t lanes = hn::Lanes(d);
  // As many independent sums as hide the latency of a load.
  auto a = hn::Zero(d), b = a, c = a, e = a, f = a, g = a, h = a, i = a;
  for (std::size_t at = 0; at < count; at += 8 * lanes) {
    const std::uint64_t* HWY_RESTRICT next = words + at;
    a = hn::Xor(a, hn::Load(d, next));
    b = hn::Xor(b, hn::Load(d, next + lanes));
    c = hn::Xor(c, hn::Load(d, next + 2 * lanes));
    e = hn::Xor(e, hn::Load(d, next + 3 * lanes));
    f = hn::Xor(f, hn::Load(d, next + 4 * lanes));
    g = hn::Xor(g, hn::Load(d, next + 5 * lanes));
    h = hn::Xor(h, hn::Load(d, next + 6 * lanes));
    i = hn::Xor(i, hn::Load(d, next + 7 * lanes));
  }
  a = hn::Xor(hn::Xor(hn::Xor(a, b), hn::Xor(c, e)), hn::Xor(hn::Xor(f, g), hn::Xor(h, i)));
  return hn::GetLane(hn::SumOfLanes(d, a));
}

}  // namespace HWY_NAMESPACE
}  // namespace softlookup::testing
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace softlookup::testing {
namespace {

constexpr std::int64_t kPageBytes = 4096;
// What a thread takes at a time; short of a second-level cache, and long for a prefetcher.
constexpr std::int64_t kPieceBytes = std::int64_t{128} << 10;

// One thread's part: taken from the front, by others too once they are done with their own.
struct alignas(64) Share {
  std::atomic<std::int64_t> next{0};
  std::int64_t end = 0;
};

}  // namespace

HWY_EXPORT(ReadOneTarget);

ReadLimit::ReadLimit(std::int64_t bytes, int thread_count)
    : bytes_((bytes + kPageBytes - 1) / kPageBytes * kPageBytes), thread_count_(thread_count) {
  const auto size = static_cast<std::size_t>(bytes_);
  memory_ = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory_ == MAP_FAILED) {
    std::perror("mmap");
    std::exit(1);
  }
  madvise(memory_, size, MADV_HUGEPAGE);  // A kernel that has none refuses.
  std::memset(memory_, 1, size);
}

ReadLimit::~ReadLimit() { munmap(memory_, static_cast<std::size_t>(bytes_)); }

double ReadLimit::Pass() {
  std::vector<Share> shares(static_cast<std::size_t>(thread_count_));
  for (int t = 0; t < thread_count_; ++t) {
    shares[t].next = bytes_ / kPageBytes * t / thread_count_ * kPageBytes;
    shares[t].end = bytes_ / kPageBytes * (t + 1) / thread_count_ * kPageBytes;
  }
  // A thread begins with its own share, so that each core's cache keeps a part of a small buffer.
  std::atomic<std::uint64_t> sink{0};  // The compiler must not leave the reading out.
  return SecondsOnPinnedThreads(thread_count_, [&](int self) {
    for (int i = 0; i < thread_count_; ++i) {
      Share& share = shares[(self + i) % thread_count_];
      for (std::int64_t at; (at = share.next.fetch_add(kPieceBytes)) < share.end;) {
        const auto* words =
            reinterpret_cast<const std::uint64_t*>(static_cast<char*>(memory_) + at);
        sink ^= HWY_DYNAMIC_DISPATCH(ReadOneTarget)(
            words, static_cast<std::size_t>(std::min(kPieceBytes, share.end - at)) / 8);
      }
    }
  });
}

}  // namespace softlookup::testing
#endif  // HWY_ONCE
