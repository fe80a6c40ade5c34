#include "client/loadtest/request_mix.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace softlookup::loadtest {

absl::StatusOr<RequestMix> RequestMix::Parse(std::string_view text) {
  const auto wrong = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("a mix is such as lookup=90,append=10, not \"",
                                                   absl::string_view(text.data(), text.size()),
                                                   "\": ", what));
  };
  RequestMix mix;
  mix.shares_ = {};
  std::set<std::size_t> named;
  double sum = 0;
  for (absl::string_view field : absl::StrSplit(absl::string_view(text.data(), text.size()), ',')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(field, absl::MaxSplits('=', 1));
    const auto name = std::find(kMethodNames.begin(), kMethodNames.end(), parts.first);
    if (name == kMethodNames.end()) {
      return wrong(
          absl::StrCat("\"", parts.first, "\" is none of ", absl::StrJoin(kMethodNames, ", ")));
    }
    const std::size_t method = name - kMethodNames.begin();
    if (!named.insert(method).second) return wrong(absl::StrCat(*name, " is there twice"));
    double& part = mix.shares_[method];
    if (!absl::SimpleAtod(parts.second, &part) || !std::isfinite(part) || part < 0) {
      return wrong(absl::StrCat("\"", parts.second, "\" is not a number of at least 0"));
    }
    sum += part;
  }
  if (!(sum > 0) || !std::isfinite(sum)) return wrong("the sum must be over 0");
  for (double& part : mix.shares_) part /= sum;
  return mix;
}

std::string RequestMix::ToString() const {
  std::vector<std::string> fields;
  for (std::size_t m = 0; m < kMethodCount; ++m) {
    if (shares_[m] > 0) fields.push_back(absl::StrCat(kMethodNames[m], "=", shares_[m]));
  }
  return absl::StrJoin(fields, ",");
}

}  // namespace softlookup::loadtest
