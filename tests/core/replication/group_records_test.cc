#include "core/replication/group_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_replace.h"
#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using ::testing::HasSubstr;
using testing::IsOk;

TEST(GroupRecordsTest, TextIsReadBackAsItWasWritten) {
  const EntryDigest digest = DigestOf("", 1, "bytes"), next = DigestOf(digest, 1, "more");
  const CommitPoint point{.epoch = 3, .sequence = 1042, .digest = digest, .nonce = "5c0e"};
  EXPECT_EQ(EncodeCommitPoint(point), "epoch=3 sequence=1042 digest=" + digest + " nonce=5c0e");
  EXPECT_EQ(*ParseCommitPoint(EncodeCommitPoint(point)), point);
  const CommitPoint begin{.epoch = 1, .nonce = "1"};
  EXPECT_EQ(*ParseCommitPoint(EncodeCommitPoint(begin)), begin);
  const Primary primary{.node = "n-1", .nonce = "77"};
  EXPECT_EQ(*ParsePrimary(EncodePrimary(primary)), primary);
  const Slot slot{.epoch = 3,
                  .sequence = 2,
                  .previous = digest,
                  .digest = next,
                  .size = 4,
                  .holders = {"n-1", "n-2"}};
  EXPECT_EQ(*ParseSlot(EncodeSlot(slot)), slot);
  const GroupConfig config{.version = 2, .copies = 2, .replicas = {"n-1", "n-2", "n-3"}};
  EXPECT_EQ(*ParseGroupConfig(EncodeGroupConfig(config)), config);
  EXPECT_EQ(*ParseApplied(EncodeApplied(~std::uint64_t{0})), ~std::uint64_t{0});
  EXPECT_EQ(EncodeTenant({.group = "g1"}), "group=g1");
  EXPECT_EQ(*ParseTenant("group=g1"), TenantRecord{.group = "g1"});
  EXPECT_EQ(*ParseTenant("group=g1 more=1"), TenantRecord{.group = "g1"});
}

TEST(GroupRecordsTest, OtherTextIsRefusedWithTheFieldThatIsWrong) {
  const std::string point = EncodeCommitPoint({.epoch = 3, .sequence = 4, .nonce = "1"});
  ASSERT_THAT(ParseCommitPoint(point), IsOk());
  struct Change {
    const char* from;
    const char* to;
    const char* named;
  };
  constexpr Change kChanges[] = {{"epoch=3", "epoch=-3", "epoch"},
                                 {"epoch=3", "epoch=03", "epoch"},
                                 {"epoch=3", "epoch=18446744073709551616", "epoch"},
                                 {"sequence=4 ", "", "sequence"},
                                 {"digest=", "digest=9F86", "digest"},
                                 {"nonce=1", "nonce=", "nonce"},
                                 {" nonce=1", "", "nonce"},
                                 {"nonce=1", "nonce=1 more=1", "malformed"}};
  for (const Change& change : kChanges) {
    const std::string text = absl::StrReplaceAll(point, {{change.from, change.to}});
    const absl::Status status = ParseCommitPoint(text).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << text;
    EXPECT_THAT(status.message(), HasSubstr(change.named)) << text;
  }
  EXPECT_TRUE(absl::IsDataLoss(ParseSlot(EncodeSlot({.sequence = 1})).status()));
  EXPECT_TRUE(absl::IsDataLoss(ParseGroupConfig("version=1 copies=2 replicas=a").status()));
  EXPECT_TRUE(absl::IsDataLoss(ParseGroupConfig("version=1 copies=0 replicas=a").status()));
  EXPECT_TRUE(absl::IsDataLoss(ParseTenant("group=").status()));
  EXPECT_TRUE(absl::IsDataLoss(ParseTenant("").status()));
}

TEST(GroupRecordsTest, ADigestTellsTheEntryAndAllBefore) {
  EXPECT_EQ(DigestOf("", 1, "a").size(), 64u);
  EXPECT_NE(DigestOf("", 1, "a"), DigestOf("", 1, "b"));
  EXPECT_NE(DigestOf("", 1, "a"), DigestOf("", 2, "a"));
  EXPECT_NE(DigestOf("", 1, "1 a"), DigestOf("", 11, " a"));
  EXPECT_NE(DigestOf("", 1, "a"), DigestOf(DigestOf("", 1, ""), 1, "a"));
  EXPECT_NE(DigestOf("ab", 1, "c"), DigestOf("a", 1, "bc"));
}

TEST(GroupKeysTest, SlotsAreUsedAgain) {
  const GroupKeys keys("main", "g1", 8);
  EXPECT_EQ(keys.commit_point(), "/softlookup/main/groups/g1/commit-point");
  EXPECT_EQ(keys.slot(3), "/softlookup/main/groups/g1/log/3");
  EXPECT_EQ(keys.slot(11), keys.slot(3));
  EXPECT_NE(keys.slot(12), keys.slot(3));
}

TEST(TenantKeysTest, TheRangeHasTheKeysOfTheClustersTenantsAlone) {
  const TenantKeys keys("main");
  EXPECT_EQ(keys.tenant("acme"), "/softlookup/main/tenants/acme");
  EXPECT_EQ(keys.TenantWith(keys.tenant("acme")), "acme");
  for (const char* tenant : {"-", "0", "A", "zzz", "~"}) {
    EXPECT_LT(keys.begin(), keys.tenant(tenant));
    EXPECT_LT(keys.tenant(tenant), keys.end());
  }
  EXPECT_GE(TenantKeys("main2").tenant("a"), keys.end());
  EXPECT_LT(GroupKeys("main", "zzz").primary(), keys.begin());
  EXPECT_GE(std::string("/softlookup/main/tenants0"), keys.end());
}

}  // namespace
}  // namespace softlookup
