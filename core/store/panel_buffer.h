#ifndef SOFTLOOKUP_CORE_STORE_PANEL_BUFFER_H_
#define SOFTLOOKUP_CORE_STORE_PANEL_BUFFER_H_

#include <cstddef>
#include <cstdint>

#include "core/kernels/panel.h"

namespace softlookup {

// Memory for some panels, on a cache line boundary.
class PanelBuffer {
 public:
  // Zero at first. One of many bytes takes memory only as far as it is written to, so room for a
  // whole block costs nothing in advance.
  PanelBuffer(const kernels::PanelShape& shape, std::int64_t panel_count);
  PanelBuffer(const PanelBuffer& other);
  PanelBuffer& operator=(const PanelBuffer&) = delete;
  ~PanelBuffer();

  std::byte* panel(std::int64_t index) { return bytes_ + index * panel_bytes_; }
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
  void* memory_ = nullptr;  // What was allocated; bytes_ is in it.
  bool is_mapped_ = false;
  std::byte* bytes_ = nullptr;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORE_PANEL_BUFFER_H_
