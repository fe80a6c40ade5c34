#ifndef SOFTLOOKUP_CANCELLER_H_
#define SOFTLOOKUP_CANCELLER_H_

#include <memory>

namespace softlookup {

namespace client_internal {
class CancelScope;
}  // namespace client_internal

// Ends calls early, from another thread than that which makes them: a WatchMemory of a memory that
// does not change, for example. Thread-safe.
class Canceller {
 public:
  Canceller();
  // All calls that were given this must be over.
  ~Canceller();
  Canceller(const Canceller&) = delete;
  Canceller& operator=(const Canceller&) = delete;

  // The calls that were given this return Cancelled soon, also those that begin later.
  void Cancel();

 private:
  friend class client_internal::CancelScope;
  struct Calls;

  const std::unique_ptr<Calls> calls_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CANCELLER_H_
