#include "server/router/limited_identities.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace softlookup::server {
namespace {

constexpr absl::Duration kStep = absl::Milliseconds(1);

TEST(LimitedIdentitiesTest, ARefusalIsRememberedForItsTime) {
  LimitedIdentities limited;
  const absl::Time now = absl::UnixEpoch();
  EXPECT_FALSE(limited.Has("a", now));
  limited.Note("a", now);
  EXPECT_TRUE(limited.Has("a", now));
  EXPECT_FALSE(limited.Has("b", now));
  limited.Note("a", now + kStep);
  EXPECT_TRUE(limited.Has("a", now + LimitedIdentities::kTime));
  EXPECT_FALSE(limited.Has("a", now + LimitedIdentities::kTime + kStep));
}

TEST(LimitedIdentitiesTest, ManyIdentitiesTakeNoMoreRoom) {
  LimitedIdentities limited(/*identities_max=*/3);
  const absl::Time now = absl::UnixEpoch();
  for (int i = 0; i < 10; ++i) {
    limited.Note(absl::StrCat(i), now);
    EXPECT_TRUE(limited.Has(absl::StrCat(i), now));
    int kept = 0;
    for (int other = 0; other < 10; ++other) kept += limited.Has(absl::StrCat(other), now) ? 1 : 0;
    EXPECT_LE(kept, 3);
  }
}

}  // namespace
}  // namespace softlookup::server
