#ifndef SOFTLOOKUP_CORE_STORE_PANEL_BUFFER_H_
#define SOFTLOOKUP_CORE_STORE_PANEL_BUFFER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/base/check.h"
#include "core/kernels/panel.h"

namespace softlookup {

// An mmap mapping that holds the panels of several buffers, on large pages where the operating
// system has them. Scans of many rows then wait for fewer address translations. The mapping ends
// with the last reference to the region.
class PanelRegion {
 public:
  // Maps at least `bytes_min` bytes, all zero. Returns null if mmap fails.
  static std::shared_ptr<PanelRegion> Make(std::int64_t bytes_min);
  PanelRegion(const PanelRegion&) = delete;
  PanelRegion& operator=(const PanelRegion&) = delete;
  ~PanelRegion();

  std::byte* at(std::int64_t offset) { return bytes_ + offset; }
  std::int64_t size() const { return size_; }
  // Returns how many bytes a region takes beyond its first `used` bytes, if only those are written.
  // The operating system commits whole large pages, so the rest of the last page is taken as well.
  static std::int64_t UnusedBytes(std::int64_t used);

 private:
  PanelRegion(std::byte* bytes, std::int64_t size) : bytes_(bytes), size_(size) {}

  std::byte* const bytes_;
  const std::int64_t size_;
};

// Storage for some panels, in the heap, in a mapping of its own, or in a PanelRegion. The first
// panel begins on a cache line boundary.
class PanelBuffer {
 public:
  // Makes panels that are all zero. If CommitsAsWritten(), pages are committed only as they are
  // written to. Room for a whole block then takes no bytes in advance.
  PanelBuffer(const kernels::PanelShape& shape, std::int64_t panel_count);
  // Uses the bytes of `region` from `offset` on, and does not clear them. `offset` must be a
  // multiple of 64. No other buffer may use these bytes.
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

  // Asks the operating system for large pages, which cause far fewer page faults. Call this only if
  // the whole buffer will be written, and before any of it is. Does nothing for a buffer in the
  // heap, or in a region, which asks for large pages itself.
  void UseLargePages();

  // Gives the pages of a buffer in a region back to the operating system when the buffer ends. Else
  // they stay until the region ends. The bytes must not be used again, so do not call this for a
  // buffer whose bytes a rollback may give to another buffer (PanelAllocator). Thread-safe.
  void FreePagesAtEnd() const { frees_pages_ = true; }

  // Returns the bytes that the buffer takes, with the object itself, once its first `written`
  // panels are written. The default is all panels. A buffer in the heap takes all its bytes from
  // the start.
  std::int64_t bytes() const { return bytes(panel_count_); }
  std::int64_t bytes(std::int64_t written) const;

  // Returns whether the pages of a buffer of `panel_count` panels are committed only as they are
  // written to.
  static bool CommitsAsWritten(const kernels::PanelShape& shape, std::int64_t panel_count);

 private:
  PanelBuffer(std::int64_t panel_count, std::int64_t panel_bytes);

  std::size_t size() const { return static_cast<std::size_t>(panel_count_ * panel_bytes_); }

  std::int64_t panel_count_;
  std::int64_t panel_bytes_;
  void* allocation_ = nullptr;  // The allocation or mapping that holds bytes_. Null in a region.
  bool is_mapped_ = false;      // Whether bytes_ are in a mapping, its own or a region.
  std::shared_ptr<PanelRegion> region_;  // Holds bytes_. Null: allocation_ holds them.
  std::byte* bytes_ = nullptr;
  mutable std::atomic<bool> frees_pages_{false};
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORE_PANEL_BUFFER_H_
