#ifndef SOFTLOOKUP_CLIENT_LOADTEST_REQUEST_MIX_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_REQUEST_MIX_H_

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "client/loadtest/random.h"

namespace softlookup::loadtest {

enum class Method { kLookup = 0, kAppend = 1 };
inline constexpr std::size_t kMethodCount = 2;
inline constexpr std::array<const char*, kMethodCount> kMethodNames = {"lookup", "append"};

inline const char* NameOf(Method method) { return kMethodNames[static_cast<std::size_t>(method)]; }

// Which part of the calls each method has. Calls are drawn independently of each other.
class RequestMix {
 public:
  // Lookups only.
  RequestMix() = default;

  // "lookup=90,append=10": weights, whatever their sum. InvalidArgument for an unknown or repeated
  // method, a weight below 0, or none above 0.
  static absl::StatusOr<RequestMix> Parse(std::string_view text);

  bool Has(Method method) const { return parts_[static_cast<std::size_t>(method)] > 0; }
  // In [0, 1].
  double PartOf(Method method) const { return parts_[static_cast<std::size_t>(method)]; }

  Method Draw(Random* random) const {
    return random->Uniform() < parts_[0] ? Method::kLookup : Method::kAppend;
  }

  // "lookup=0.9,append=0.1", without what has no part.
  std::string ToString() const;

 private:
  std::array<double, kMethodCount> parts_ = {1, 0};  // Their sum is 1.
};

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_REQUEST_MIX_H_
