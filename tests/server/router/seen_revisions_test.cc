#include "server/router/seen_revisions.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace softlookup::server {
namespace {

void Advance(SeenRevisions& revisions, std::uint64_t steps) {
  for (std::uint64_t i = 0; i < steps; ++i) revisions.Advance();
}

TEST(SeenRevisionsTest, TheNewestIsNeeded) {
  SeenRevisions revisions;
  EXPECT_EQ(revisions.Needed("s"), 0u);
  revisions.Note("s", 5);
  revisions.Note("s", 3);
  revisions.Note("s", 0);
  EXPECT_EQ(revisions.Needed("s"), 5u);
  EXPECT_EQ(revisions.Needed("t"), 0u);
}

TEST(SeenRevisionsTest, ARevisionIsKeptForItsStepsAfterItWasNoted) {
  SeenRevisions revisions;
  revisions.Note("s", 5);
  Advance(revisions, SeenRevisions::kStepsKept - 1);
  EXPECT_EQ(revisions.Needed("s"), 5u);
  revisions.Note("s", 6);
  Advance(revisions, SeenRevisions::kStepsKept - 1);
  EXPECT_EQ(revisions.Needed("s"), 6u);
  Advance(revisions, 1);
  EXPECT_EQ(revisions.Needed("s"), 0u);
}

TEST(SeenRevisionsTest, AnOldRevisionDoesNotKeepAnEntry) {
  SeenRevisions revisions;
  revisions.Note("s", 5);
  Advance(revisions, SeenRevisions::kStepsKept - 1);
  revisions.Note("s", 5);
  revisions.Note("s", 4);
  Advance(revisions, 1);
  EXPECT_EQ(revisions.Needed("s"), 0u);
}

TEST(SeenRevisionsTest, OnlyThePrimaryCanTellOfAStoreThatWasReplaced) {
  SeenRevisions revisions;
  for (const bool was_known : {false, true}) {
    if (was_known) revisions.Note("s", 50);
    revisions.Replace("s");
    EXPECT_EQ(revisions.Needed("s"), std::nullopt);
    revisions.Note("s", 2);
    Advance(revisions, SeenRevisions::kStepsKept - 1);
    EXPECT_EQ(revisions.Needed("s"), std::nullopt);
    revisions.Note("s", 3);
    Advance(revisions, 1);
    EXPECT_EQ(revisions.Needed("s"), 3u) << "that of the new store, without the old one's";
    Advance(revisions, SeenRevisions::kStepsKept - 1);
    EXPECT_EQ(revisions.Needed("s"), 0u);
  }
}

TEST(SeenRevisionsTest, WhatHasNoRoomIsForThePrimaryUntilThereIsRoom) {
  SeenRevisions revisions(/*stores_max=*/2);
  revisions.Note("a", 1);
  revisions.Replace("b");
  EXPECT_EQ(revisions.Needed("c"), 0u);
  revisions.Note("c", 7);
  EXPECT_EQ(revisions.Needed("c"), std::nullopt);
  EXPECT_EQ(revisions.Needed("d"), std::nullopt) << "it may be one that had no room";
  EXPECT_EQ(revisions.Needed("a"), 1u);
  revisions.Note("a", 2);
  EXPECT_EQ(revisions.Needed("a"), 2u);
  Advance(revisions, SeenRevisions::kStepsKept);
  EXPECT_EQ(revisions.Needed("c"), 0u);
  revisions.Note("c", 8);
  EXPECT_EQ(revisions.Needed("c"), 8u);
  revisions.Replace("d");
  EXPECT_EQ(revisions.Needed("e"), 0u);
  revisions.Replace("e");
  EXPECT_EQ(revisions.Needed("e"), std::nullopt);
}

TEST(SeenRevisionsTest, ThreadsSeeEachOthersRevisions) {
  SeenRevisions revisions(/*stores_max=*/4);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&revisions, t] {
      const std::string store(1, static_cast<char>('a' + t));
      for (std::uint64_t i = 1; i <= 2'000; ++i) {
        revisions.Note(store, i);
        EXPECT_EQ(revisions.Needed(store), i);
        if (i % 100 == 0) revisions.Replace("shared");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(revisions.Needed("shared"), std::nullopt);
}

}  // namespace
}  // namespace softlookup::server
