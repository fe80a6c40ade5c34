#ifndef SOFTLOOKUP_SERVER_OBSERVABILITY_SECURITY_STATS_H_
#define SOFTLOOKUP_SERVER_OBSERVABILITY_SECURITY_STATS_H_

#include <atomic>
#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace softlookup::server {

// What became of the changes of files that belong together, since the start.
struct ReloadCounts {
  std::uint64_t applied = 0;
  std::uint64_t rejected = 0;
  bool is_rejected = false;  // What the files hold now is rejected, and older contents are in use.
};

// Counts changes of files that belong together. Thread-safe.
class ReloadCounter {
 public:
  // The files were read again, and their contents are in use.
  void CountApplied() {
    applied_.fetch_add(1, std::memory_order_relaxed);
    is_rejected_.store(false, std::memory_order_relaxed);
  }
  // The files could not be read, or their contents could not be used.
  void CountRejected() {
    rejected_.fetch_add(1, std::memory_order_relaxed);
    is_rejected_.store(true, std::memory_order_relaxed);
  }
  ReloadCounts counts() const {
    return {.applied = applied_.load(std::memory_order_relaxed),
            .rejected = rejected_.load(std::memory_order_relaxed),
            .is_rejected = is_rejected_.load(std::memory_order_relaxed)};
  }

 private:
  std::atomic<std::uint64_t> applied_{0};
  std::atomic<std::uint64_t> rejected_{0};
  std::atomic<bool> is_rejected_{false};
};

// Figures about the files that secure a server.
struct SecurityStats {
  ReloadCounts tls;   // Certificates and their key.
  ReloadCounts auth;  // The auth file.
  // When the server's own certificate expires. Nullopt: the server has no TLS.
  std::optional<absl::Time> certificate_end;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_OBSERVABILITY_SECURITY_STATS_H_
