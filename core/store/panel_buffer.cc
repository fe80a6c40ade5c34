#include "core/store/panel_buffer.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "core/memory/heap_bytes.h"

namespace softlookup {
namespace {

constexpr std::int64_t kAlignment = 64;
// Of what malloc returns, so that many bytes are too many for the rest of a cache line.
constexpr std::int64_t kAlignmentSlack = kAlignment - 16;
constexpr std::int64_t kPageBytes = 4096;

// From here on, the kernel gives a buffer its pages. The heap would keep holes of this size, as
// blocks come and go between small things that stay. A buffer of one panel is copied with almost
// every append: for that, asking the kernel is too slow.
constexpr std::int64_t kMappedBytesMin = std::int64_t{64} << 10;

constexpr std::int64_t RoundUp(std::int64_t bytes, std::int64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

bool IsMapped(std::int64_t panel_count, std::int64_t panel_bytes) {
#if defined(__SANITIZE_ADDRESS__)
  return false;  // What is written behind the end would not be found.
#else
  return panel_count > 1 && panel_count * panel_bytes >= kMappedBytesMin;
#endif
}

}  // namespace

bool PanelBuffer::CommitsAsWritten(const kernels::PanelShape& shape, std::int64_t panel_count) {
  return IsMapped(panel_count, shape.bytes());
}

PanelBuffer::PanelBuffer(std::int64_t panel_count, std::int64_t panel_bytes)
    : panel_count_(panel_count), panel_bytes_(panel_bytes) {
  if (IsMapped(panel_count, panel_bytes)) {
    memory_ = ::mmap(nullptr, size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    is_mapped_ = memory_ != MAP_FAILED;  // Fails where the process has too many mappings.
    if (is_mapped_) {
      bytes_ = static_cast<std::byte*>(memory_);
      return;
    }
  }
  // Not aligned_alloc, which leaves a hole before every buffer that it returns.
  memory_ = std::malloc(size() + kAlignmentSlack);
  if (memory_ == nullptr) throw std::bad_alloc();
  const auto address = reinterpret_cast<std::uintptr_t>(memory_);
  bytes_ = reinterpret_cast<std::byte*>((address + kAlignment - 1) / kAlignment * kAlignment);
}

PanelBuffer::PanelBuffer(const kernels::PanelShape& shape, std::int64_t panel_count)
    : PanelBuffer(panel_count, shape.bytes()) {
  if (!is_mapped_) std::memset(bytes_, 0, size());
}

PanelBuffer::PanelBuffer(const PanelBuffer& other)
    : PanelBuffer(other.panel_count_, other.panel_bytes_) {
  std::memcpy(bytes_, other.bytes_, size());
}

void PanelBuffer::UseLargePages() {
  if (!is_mapped_) return;
  // Buffers lie next to each other, so a large page may hold more than one. A kernel that has none
  // refuses.
  ::madvise(memory_, size(), MADV_HUGEPAGE);
}

PanelBuffer::~PanelBuffer() {
  if (!is_mapped_) {
    std::free(memory_);
    return;
  }
  // Taking one mapping apart into two may be one too many; the memory goes back all the same.
  if (::munmap(memory_, size()) != 0) ::madvise(memory_, size(), MADV_DONTNEED);
}

std::int64_t PanelBuffer::bytes(std::int64_t written) const {
  const std::int64_t object = SharedBytes<PanelBuffer>();
  if (is_mapped_) return object + RoundUp(written * panel_bytes_, kPageBytes);
  return object + HeapBytes(size() + kAlignmentSlack);
}

}  // namespace softlookup
