#ifndef SOFTLOOKUP_CORE_STORE_PANEL_BUFFER_H_
#define SOFTLOOKUP_CORE_STORE_PANEL_BUFFER_H_

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "core/kernels/panel.h"

namespace softlookup {

// Memory for some panels, on a cache line boundary.
class PanelBuffer {
 public:
  // Zero at first.
  PanelBuffer(const kernels::PanelShape& shape, std::int64_t panel_count)
      : PanelBuffer(panel_count, shape.floats()) {
    std::memset(floats_.get(), 0, static_cast<std::size_t>(bytes()));
  }

  PanelBuffer(const PanelBuffer& other) : PanelBuffer(other.panel_count_, other.panel_floats_) {
    std::memcpy(floats_.get(), other.floats_.get(), static_cast<std::size_t>(bytes()));
  }
  PanelBuffer& operator=(const PanelBuffer&) = delete;

  float* panel(std::int64_t index) { return floats_.get() + index * panel_floats_; }
  const float* panel(std::int64_t index) const { return floats_.get() + index * panel_floats_; }
  std::int64_t panel_count() const { return panel_count_; }
  std::int64_t bytes() const { return panel_count_ * panel_floats_ * 4; }

 private:
  PanelBuffer(std::int64_t panel_count, std::int64_t panel_floats)
      : panel_count_(panel_count), panel_floats_(panel_floats) {
    // A multiple of the alignment: 16 rows of float32.
    const std::size_t size = static_cast<std::size_t>(bytes());
    floats_.reset(static_cast<float*>(std::aligned_alloc(kAlignment, size)));
    if (floats_ == nullptr) throw std::bad_alloc();
  }

  static constexpr std::size_t kAlignment = 64;
  struct Free {
    void operator()(float* floats) const { std::free(floats); }
  };

  std::int64_t panel_count_;
  std::int64_t panel_floats_;
  std::unique_ptr<float, Free> floats_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORE_PANEL_BUFFER_H_
