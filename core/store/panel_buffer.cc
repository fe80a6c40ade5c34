#include "core/store/panel_buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "absl/base/config.h"
#include "core/memory/heap_bytes.h"

namespace softlookup {
namespace {

constexpr std::int64_t kAlignment = 64;  // A cache line.
// Extra bytes that suffice to align a buffer: malloc itself aligns to 16 bytes.
constexpr std::int64_t kAlignmentSlack = kAlignment - 16;
constexpr std::int64_t kPageBytes = 4096;
constexpr std::int64_t kLargePageBytes = std::int64_t{2} << 20;
constexpr std::int64_t kRegionBytes = 2 * kLargePageBytes;  // The smallest region.

// Buffers of at least this many bytes are mapped. In the heap, freed buffers would leave holes
// between small allocations that outlive them. A buffer of one panel is never mapped: almost every
// append copies such a buffer, and mapping is too slow for that.
constexpr std::int64_t kMappedBytesMin = std::int64_t{64} << 10;

constexpr std::int64_t RoundUp(std::int64_t bytes, std::int64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

bool IsMapped(std::int64_t panel_count, std::int64_t panel_bytes) {
#if defined(ABSL_HAVE_ADDRESS_SANITIZER)
  return false;  // AddressSanitizer cannot find a write behind a mapping's end.
#else
  return panel_count > 1 && panel_count * panel_bytes >= kMappedBytesMin;
#endif
}

// Frees the pages that lie within the `size` bytes from `bytes` on. An error is ignored: the pages
// then stay until their mapping ends.
void FreeWholePages(std::byte* bytes, std::int64_t size) {
  const auto address = reinterpret_cast<std::intptr_t>(bytes);
  const std::int64_t begin = RoundUp(address, kPageBytes) - address;
  const std::int64_t end = (address + size) / kPageBytes * kPageBytes - address;
  if (begin < end) ::madvise(bytes + begin, static_cast<std::size_t>(end - begin), MADV_DONTNEED);
}

}  // namespace

std::shared_ptr<PanelRegion> PanelRegion::Make(std::int64_t bytes_min) {
  const std::int64_t size = RoundUp(std::max(bytes_min, kRegionBytes), kLargePageBytes);
  // Maps one large page more than `size`, so that a range of `size` bytes that begins on a large
  // page lies within. Then unmaps the bytes before and behind that range.
  const std::int64_t mapped = size + kLargePageBytes;
  void* const memory = ::mmap(nullptr, static_cast<std::size_t>(mapped), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(memory);
  const auto address = reinterpret_cast<std::intptr_t>(memory);
  const std::int64_t before = RoundUp(address, kLargePageBytes) - address;
  if (before > 0) ::munmap(begin, static_cast<std::size_t>(before));
  if (before < kLargePageBytes) {
    ::munmap(begin + before + size, static_cast<std::size_t>(kLargePageBytes - before));
  }
  ::madvise(begin + before, static_cast<std::size_t>(size), MADV_HUGEPAGE);
  return std::shared_ptr<PanelRegion>(new PanelRegion(begin + before, size));
}

PanelRegion::~PanelRegion() { ::munmap(bytes_, static_cast<std::size_t>(size_)); }

std::int64_t PanelRegion::UnusedBytes(std::int64_t used) {
  return RoundUp(used, kLargePageBytes) - used;
}

bool PanelBuffer::CommitsAsWritten(const kernels::PanelShape& shape, std::int64_t panel_count) {
  return IsMapped(panel_count, shape.bytes());
}

PanelBuffer::PanelBuffer(std::int64_t panel_count, std::int64_t panel_bytes)
    : panel_count_(panel_count), panel_bytes_(panel_bytes) {
  if (IsMapped(panel_count, panel_bytes)) {
    allocation_ =
        ::mmap(nullptr, size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    is_mapped_ = allocation_ != MAP_FAILED;  // mmap fails if the process has too many mappings.
    if (is_mapped_) {
      bytes_ = static_cast<std::byte*>(allocation_);
      return;
    }
  }
  // Aligns by hand, because aligned_alloc leaves a hole before every buffer that it returns.
  allocation_ = std::malloc(size() + kAlignmentSlack);
  if (allocation_ == nullptr) throw std::bad_alloc();
  const auto address = reinterpret_cast<std::uintptr_t>(allocation_);
  bytes_ = static_cast<std::byte*>(allocation_) + (kAlignment - address % kAlignment) % kAlignment;
}

PanelBuffer::PanelBuffer(const kernels::PanelShape& shape, std::int64_t panel_count)
    : PanelBuffer(panel_count, shape.bytes()) {
  if (!is_mapped_) std::memset(bytes_, 0, size());
}

PanelBuffer::PanelBuffer(const kernels::PanelShape& shape, std::int64_t panel_count,
                         std::shared_ptr<PanelRegion> region, std::int64_t offset)
    : panel_count_(panel_count),
      panel_bytes_(shape.bytes()),
      is_mapped_(true),
      region_(std::move(region)),
      bytes_(region_->at(offset)) {}

PanelBuffer::PanelBuffer(const PanelBuffer& other)
    : PanelBuffer(other.panel_count_, other.panel_bytes_) {
  std::memcpy(bytes_, other.bytes_, size());
}

void PanelBuffer::UseLargePages() {
  if (!is_mapped_ || region_ != nullptr) return;
  // Mappings lie next to each other, so a large page may hold more than one buffer. An operating
  // system without large pages returns an error. The error is ignored, because the buffer works
  // without large pages.
  ::madvise(allocation_, size(), MADV_HUGEPAGE);
}

PanelBuffer::~PanelBuffer() {
  if (region_ != nullptr) {
    if (frees_pages_) FreeWholePages(bytes_, static_cast<std::int64_t>(size()));
    return;
  }
  if (!is_mapped_) {
    std::free(allocation_);
    return;
  }
  // munmap can split a mapping in two. munmap fails if the process then has too many mappings.
  // madvise frees the pages even then.
  if (::munmap(allocation_, size()) != 0) ::madvise(allocation_, size(), MADV_DONTNEED);
}

std::int64_t PanelBuffer::bytes(std::int64_t written) const {
  const std::int64_t object = SharedBytes<PanelBuffer>();
  if (is_mapped_) return object + RoundUp(written * panel_bytes_, kPageBytes);
  return object + HeapBytes(size() + kAlignmentSlack);
}

}  // namespace softlookup
