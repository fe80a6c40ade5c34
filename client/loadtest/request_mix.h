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

// The share of each method in the calls. The method of each call is drawn at random.
class RequestMix {
 public:
  // Makes a mix of lookups only.
  RequestMix() = default;

  // Parses weights such as "lookup=90,append=10", whose sum need not be 100. InvalidArgument for an
  // unknown or repeated method, a weight below 0, or no weight above 0.
  static absl::StatusOr<RequestMix> Parse(std::string_view text);

  bool Has(Method method) const { return shares_[static_cast<std::size_t>(method)] > 0; }
  // Returns the method's share, in [0, 1].
  double ShareOf(Method method) const { return shares_[static_cast<std::size_t>(method)]; }

  Method Draw(Random* random) const {
    return random->Uniform() < shares_[0] ? Method::kLookup : Method::kAppend;
  }

  // Returns the shares, such as "lookup=0.9,append=0.1", without methods whose share is 0.
  std::string ToString() const;

 private:
  std::array<double, kMethodCount> shares_ = {1, 0};  // Their sum is 1.
};

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_REQUEST_MIX_H_
