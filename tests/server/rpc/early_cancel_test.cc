#include "server/rpc/early_cancel.h"

#include <gtest/gtest.h>

namespace softlookup::server {
namespace {

constexpr absl::Duration kTick = absl::Nanoseconds(1);

TEST(EarlyCancelTest, AClientIsToBlameForWhatItCancelsWithinASecond) {
  EXPECT_EQ(BlameFor(absl::ZeroDuration(), /*is_late=*/false), Blame::kCancelled);
  EXPECT_EQ(BlameFor(absl::Seconds(1), /*is_late=*/false), Blame::kCancelled);
  EXPECT_EQ(BlameFor(absl::Seconds(1) + kTick, /*is_late=*/false), Blame::kNone);
}

TEST(EarlyCancelTest, AClientIsToBlameForADeadlineThatNoServerCouldMeet) {
  EXPECT_EQ(BlameFor(absl::ZeroDuration(), /*is_late=*/true), Blame::kLate);
  EXPECT_EQ(BlameFor(absl::Milliseconds(10), /*is_late=*/true), Blame::kLate);
  EXPECT_EQ(BlameFor(absl::Milliseconds(10) + kTick, /*is_late=*/true), Blame::kNone);
  EXPECT_EQ(BlameFor(absl::Hours(1), /*is_late=*/true), Blame::kNone);
}

}  // namespace
}  // namespace softlookup::server
