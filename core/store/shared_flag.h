#ifndef SOFTLOOKUP_CORE_STORE_SHARED_FLAG_H_
#define SOFTLOOKUP_CORE_STORE_SHARED_FLAG_H_

#include <memory>

namespace softlookup {

// True if another holder may use the object that the pointer beside this flag points to. Unshare
// then copies the object before a change. A copy of the pointer shares the object, so copying the
// flag sets it in the original and in the copy. A class that has such pairs can therefore be copied
// as a savepoint. Not thread-safe.
class SharedFlag {
 public:
  SharedFlag() = default;
  SharedFlag(const SharedFlag& other) { *this = other; }
  SharedFlag& operator=(const SharedFlag& other) {
    other.is_set_ = true;
    is_set_ = true;
    return *this;
  }

  bool is_set() const { return is_set_; }
  void Set() { is_set_ = true; }
  void Clear() { is_set_ = false; }

 private:
  mutable bool is_set_ = false;
};

// Returns the object of `pointer` for a change that only the caller may see. If `pointer` is null,
// it gets what make() returns. If `is_shared` is set, it gets a copy. Clears `is_shared`.
template <typename T, typename Make>
T& Unshare(std::shared_ptr<T>& pointer, SharedFlag& is_shared, const Make& make) {
  if (pointer == nullptr) {
    pointer = make();
  } else if (is_shared.is_set()) {
    pointer = std::make_shared<T>(*pointer);
  }
  is_shared.Clear();
  return *pointer;
}

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORE_SHARED_FLAG_H_
