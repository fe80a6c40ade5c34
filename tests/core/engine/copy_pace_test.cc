#include "core/engine/copy_pace.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>

#include "absl/time/time.h"

namespace softlookup {
namespace {

// A copy whose every write takes the time that a test says.
class CopyPaceTest : public ::testing::Test {
 protected:
  // Returns how long the copy rests after a write of this time, during which `others` came.
  absl::Duration RestAfter(absl::Duration time, std::uint64_t others = 0) {
    calls_ += others + 1;
    const absl::Time begin = now_;
    now_ += time;
    return pace_.RestAfterWrite(begin, now_);
  }

  absl::Time now_ = absl::UnixEpoch();

 private:
  std::uint64_t calls_ = 70;  // Of which none is of the copy.
  const std::function<std::uint64_t()> count_ = [this] { return calls_; };

 protected:
  CopyPace pace_{count_};
};

TEST_F(CopyPaceTest, ACopyThatIsAloneDoesNotRest) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(RestAfter(absl::Milliseconds(4)), absl::ZeroDuration());
}

TEST_F(CopyPaceTest, RestsFiveTimesAsLongAsItWroteForASecondAfterACall) {
  EXPECT_EQ(RestAfter(absl::Milliseconds(4), /*others=*/1), absl::Milliseconds(20));
  now_ += CopyPace::kBusyTime - absl::Milliseconds(8);
  EXPECT_EQ(RestAfter(absl::Milliseconds(7)), absl::Milliseconds(35));
  EXPECT_EQ(RestAfter(absl::Milliseconds(1)), absl::ZeroDuration());
  EXPECT_EQ(RestAfter(absl::Milliseconds(5), /*others=*/3), absl::Milliseconds(25));
}

TEST_F(CopyPaceTest, WritesAreSmallWhileOtherCallsCome) {
  EXPECT_EQ(pace_.bytes_per_write(), CopyPace::kBytesIfBusy) << "it is not known yet";
  RestAfter(absl::Milliseconds(4));
  EXPECT_EQ(pace_.bytes_per_write(), CopyPace::kBytesIfAlone);
  RestAfter(absl::Milliseconds(4), /*others=*/1);
  EXPECT_EQ(pace_.bytes_per_write(), CopyPace::kBytesIfBusy);
}

TEST_F(CopyPaceTest, RestsAfterASlowWriteForALimitedTime) {
  EXPECT_EQ(RestAfter(absl::Seconds(9), /*others=*/1), CopyPace::kRestMax);
}

}  // namespace
}  // namespace softlookup
