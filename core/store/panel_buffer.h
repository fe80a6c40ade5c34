#ifndef SOFTLOOKUP_CORE_STORE_PANEL_BUFFER_H_
#define SOFTLOOKUP_CORE_STORE_PANEL_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/base/check.h"
#include "core/kernels/panel.h"

namespace softlookup {

// Memory for the panels of several buffers, on large pages where the kernel has them: a scan of
// many rows then waits for fewer translations. Given back when the last of them is gone.
class PanelRegion {
 public:
  // Of at least `bytes_min`, all zero. Null if there is no such memory.
  static std::shared_ptr<PanelRegion> Make(std::int64_t bytes_min);
  PanelRegion(const PanelRegion&) = delete;
  PanelRegion& operator=(const PanelRegion&) = delete;
  ~PanelRegion();

  std::byte* at(std::int64_t offset) { return memory_ + offset; }
  std::int64_t size() const { return size_; }
  // What it takes beyond its first `used` bytes, if no more has been written to.
  static std::int64_t UnusedBytes(std::int64_t used);

 private:
  PanelRegion(std::byte* memory, std::int64_t size) : memory_(memory), size_(size) {}

  std::byte* const memory_;
  const std::int64_t size_;
};

// Memory for some panels, on a cache line boundary.
class PanelBuffer {
 public:
  // Zero at first. One of many bytes takes memory only as far as it is written to, so room for a
  // whole block costs nothing in advance.
  PanelBuffer(const kernels::PanelShape& shape, std::int64_t panel_count);
  // From `offset` on in `region`, where nobody else has any. As zero as that is.
  PanelBuffer(const kernels::PanelShape& shape, std::int64_t panel_count,
              std::shared_ptr<PanelRegion> region, std::int64_t offset);
  PanelBuffer(const PanelBuffer& other);
  PanelBuffer& operator=(const PanelBuffer&) = delete;
  ~PanelBuffer();

  std::byte* panel(std::int64_t index) {
    SOFTLOOKUP_DCHECK(index >= 0 && index < panel_count_)
        << "panel " << index << " of " << panel_count_;
    return bytes_ + index * panel_bytes_;
  }
  const std::byte* panel(std::int64_t index) const { return bytes_ + index * panel_bytes_; }
  std::int64_t panel_count() const { return panel_count_; }

  // All of it is about to be written: has the kernel give large pages where it can, which costs a
  // small part of the faults.
  void UseLargePages();

  // Memory that it takes, itself included: with all panels written, or the first `written`.
  std::int64_t bytes() const { return bytes(panel_count_); }
  std::int64_t bytes(std::int64_t written) const;

  // Whether a buffer of `panel_count` panels takes memory only as far as it is written to.
  static bool CommitsAsWritten(const kernels::PanelShape& shape, std::int64_t panel_count);

 private:
  PanelBuffer(std::int64_t panel_count, std::int64_t panel_bytes);

  std::size_t size() const { return static_cast<std::size_t>(panel_count_ * panel_bytes_); }

  std::int64_t panel_count_;
  std::int64_t panel_bytes_;
  void* memory_ = nullptr;  // What was allocated, if anything; bytes_ is in it.
  bool is_mapped_ = false;
  std::shared_ptr<PanelRegion> region_;  // If it is what has the memory.
  std::byte* bytes_ = nullptr;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORE_PANEL_BUFFER_H_
