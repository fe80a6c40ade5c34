#include "core/engine/committer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "core/base/error.h"
#include "tests/testing/gated_log.h"

namespace softlookup {
namespace {

using ::softlookup::testing::GatedLog;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using MayBlock = Committer::MayBlock;

struct WriteOptions {
  Sync sync = Sync::kYes;
  bool alone = false;
  std::int64_t bytes = 1;
  absl::Status staged;
};

class CommitterTest : public ::testing::Test {
 protected:
  // Notes what the committer does with it.
  class NotingWrite final : public Write {
   public:
    NotingWrite(CommitterTest& test, std::string name, WriteOptions options)
        : test_(test), name_(std::move(name)), options_(std::move(options)) {}

    absl::Status Stage(LogBatch* batch) override {
      EXPECT_EQ(batch != nullptr, test_.has_log_);
      test_.Note(absl::StrCat("stage ", name_));
      test_.thread_ = std::this_thread::get_id();
      return options_.staged;
    }
    void Publish() override { test_.Note(absl::StrCat("publish ", name_)); }
    void Rollback() override { test_.Note(absl::StrCat("rollback ", name_)); }
    void Answer(absl::Status status) override {
      test_.Note(absl::StrCat("answer ", name_, " ", absl::StatusCodeToString(status.code())));
    }
    Sync sync() const override { return options_.sync; }
    bool alone() const override { return options_.alone; }
    std::int64_t bytes() const override { return options_.bytes; }

   private:
    CommitterTest& test_;
    const std::string name_;
    const WriteOptions options_;
  };

  // Notes what the committer reports of the log.
  class NotingObserver final : public EngineObserver {
   public:
    explicit NotingObserver(CommitterTest& test) : test_(test) {}
    void OnWritesRefused(const absl::Status& error) override {
      test_.Note(absl::StrCat("refused: ", error.message()));
    }
    void OnWritesTaken() override { test_.Note("taken"); }

   private:
    CommitterTest& test_;
  };

  void Start(std::int64_t waiting_bytes_max = 1'000'000'000,
             std::shared_ptr<EngineObserver> observer = nullptr) {
    committer_ = std::make_unique<Committer>(has_log_ ? &log_ : nullptr, waiting_bytes_max,
                                             sync_time_, log_.clock, std::move(observer));
  }

  bool Post(const std::string& name, WriteOptions options = {},
            MayBlock may_block = MayBlock::kNo) {
    return committer_->Post(std::make_unique<NotingWrite>(*this, name, std::move(options)),
                            may_block);
  }

  // Posts a write, and returns when the log holds it up. What is posted then waits until Finish().
  void HoldUp() {
    log_.gated = true;
    EXPECT_TRUE(Post("held"));
    log_.entered.WaitForNotification();
  }

  // Runs everything to its end. Returns what happened since the held write was answered.
  std::vector<std::string> Finish() {
    if (!log_.gate.HasBeenNotified()) log_.gate.Notify();
    committer_.reset();
    absl::MutexLock lock(&mutex_);
    std::vector<std::string> events;
    for (const std::string& event : events_) {
      events.push_back(event);
      if (event == "answer held OK") events.clear();
    }
    return events;
  }

  void Note(std::string event) {
    absl::MutexLock lock(&mutex_);
    events_.push_back(std::move(event));
  }

  // Waits until `event` is noted.
  void Await(const std::string& event) {
    const auto is_noted = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return std::ranges::find(events_, event) != events_.end();
    };
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&is_noted));
  }

  bool has_log_ = true;
  GatedLog log_;
  Histogram sync_time_{kTimeBounds};
  absl::Mutex mutex_;
  std::vector<std::string> events_ ABSL_GUARDED_BY(mutex_);
  std::thread::id thread_;  // Of the last Stage().
  std::unique_ptr<Committer> committer_;
};

TEST_F(CommitterTest, WritesThatWaitTogetherShareACommit) {
  Start();
  HoldUp();
  EXPECT_TRUE(Post("a"));
  EXPECT_TRUE(Post("b"));
  EXPECT_THAT(Finish(), ElementsAre("stage a", "stage b", "publish a", "publish b", "answer a OK",
                                    "answer b OK"));
  EXPECT_EQ(log_.syncs().size(), 2u);
}

TEST_F(CommitterTest, NothingIsStagedBetweenTheStageAndThePublishOfAWriteThatIsAlone) {
  Start();
  HoldUp();
  EXPECT_TRUE(Post("a"));
  EXPECT_TRUE(Post("b", {.alone = true}));
  EXPECT_TRUE(Post("c"));
  EXPECT_THAT(Finish(), ElementsAre("stage a", "publish a", "answer a OK", "stage b", "publish b",
                                    "answer b OK", "stage c", "publish c", "answer c OK"));
}

TEST_F(CommitterTest, AWriteThatStageRefusesIsAnsweredAndNothingElse) {
  Start();
  HoldUp();
  EXPECT_TRUE(Post("a", {.staged = absl::NotFoundError("")}));
  EXPECT_TRUE(Post("b"));
  EXPECT_THAT(Finish(),
              ElementsAre("stage a", "stage b", "publish b", "answer a NOT_FOUND", "answer b OK"));
}

TEST_F(CommitterTest, ACommitThatFailsRollsBackWhatWasStaged) {
  Start();
  log_.result = absl::UnavailableError("the disk is full");
  EXPECT_TRUE(Post("a", {.staged = absl::NotFoundError("")}, MayBlock::kYes));
  EXPECT_TRUE(Post("b", {}, MayBlock::kYes));
  EXPECT_THAT(Finish(), ElementsAre("stage a", "answer a NOT_FOUND", "stage b", "rollback b",
                                    "answer b UNAVAILABLE"));
}

TEST_F(CommitterTest, TheLogIsSyncedIfAWriteThatWasStagedAsksForIt) {
  Start();
  const WriteOptions unsynced = {.sync = Sync::kNo};
  EXPECT_TRUE(Post("a", unsynced, MayBlock::kYes));
  EXPECT_TRUE(Post("b", {.staged = absl::NotFoundError("")}, MayBlock::kYes));
  EXPECT_TRUE(Post("c", {}, MayBlock::kYes));
  Finish();
  EXPECT_THAT(log_.syncs(), ElementsAre(Sync::kNo, Sync::kNo, Sync::kYes));
}

TEST_F(CommitterTest, AGroupIsSyncedForOneOfItsWrites) {
  Start();
  HoldUp();
  EXPECT_TRUE(Post("a", {.sync = Sync::kNo}));
  EXPECT_TRUE(Post("b", {.sync = Sync::kYes}));
  EXPECT_TRUE(Post("c", {.sync = Sync::kNo}));
  Finish();
  EXPECT_THAT(log_.syncs(), ElementsAre(Sync::kYes, Sync::kYes));
}

TEST_F(CommitterTest, BytesThatWaitAreBoundedButOneWriteMayAlwaysWait) {
  Start(/*waiting_bytes_max=*/100);
  HoldUp();
  EXPECT_TRUE(Post("a", {.bytes = 101}));
  EXPECT_FALSE(Post("b"));
  EXPECT_THAT(Finish(), ElementsAre("stage a", "publish a", "answer a OK"));
}

TEST_F(CommitterTest, AsManyBytesAsTheBoundWait) {
  Start(/*waiting_bytes_max=*/100);
  HoldUp();
  EXPECT_TRUE(Post("a", {.bytes = 60}));
  EXPECT_TRUE(Post("b", {.bytes = 40}));
  EXPECT_FALSE(Post("c"));
  Finish();
}

TEST_F(CommitterTest, AGroupHasAtMost512Writes) {
  Start();
  HoldUp();
  for (int i = 0; i < 513; ++i) EXPECT_TRUE(Post(absl::StrCat(i)));
  const std::vector<std::string> events = Finish();
  EXPECT_EQ(log_.syncs().size(), 3u);
  EXPECT_EQ(events[511], "stage 511");
  EXPECT_EQ(events[512], "publish 0");
}

TEST_F(CommitterTest, AGroupEndsWhenItHasEightMebibytes) {
  Start();
  HoldUp();
  for (const char* name : {"a", "b", "c"}) EXPECT_TRUE(Post(name, {.bytes = 4 << 20}));
  EXPECT_THAT(Finish(), ElementsAre("stage a", "stage b", "publish a", "publish b", "answer a OK",
                                    "answer b OK", "stage c", "publish c", "answer c OK"));
}

TEST_F(CommitterTest, ACallerThatMayBlockRunsAWriteThatHasNothingBeforeIt) {
  Start();
  EXPECT_TRUE(Post("a", {}, MayBlock::kYes));
  EXPECT_EQ(thread_, std::this_thread::get_id());
  Finish();
}

TEST_F(CommitterTest, ACallerThatMayNotBlockRunsNoWrite) {
  Start();
  EXPECT_TRUE(Post("a"));
  Finish();
  EXPECT_NE(thread_, std::this_thread::get_id());
}

TEST_F(CommitterTest, NoCallerWaitsForASlowLog) {
  Start();
  log_.commit_time = absl::Milliseconds(1);
  EXPECT_TRUE(Post("a", {}, MayBlock::kYes));
  EXPECT_EQ(thread_, std::this_thread::get_id());
  EXPECT_TRUE(Post("b", {}, MayBlock::kYes));
  EXPECT_THAT(Finish(), ElementsAre("stage a", "publish a", "answer a OK", "stage b", "publish b",
                                    "answer b OK"));
  EXPECT_NE(thread_, std::this_thread::get_id());
}

TEST_F(CommitterTest, ALogUnderAMillisecondIsQuick) {
  Start();
  log_.commit_time = absl::Milliseconds(1) - absl::Nanoseconds(1);
  for (const char* name : {"a", "b"}) {
    EXPECT_TRUE(Post(name, {}, MayBlock::kYes));
    EXPECT_EQ(thread_, std::this_thread::get_id());
  }
  Finish();
}

TEST_F(CommitterTest, TheTimeOfSyncsIsObserved) {
  Start();
  log_.commit_time = absl::Microseconds(7);
  EXPECT_TRUE(Post("a", {.sync = Sync::kNo}, MayBlock::kYes));
  EXPECT_TRUE(Post("b", {}, MayBlock::kYes));
  Finish();
  EXPECT_EQ(sync_time_.counts().sum, 7000);
}

TEST_F(CommitterTest, WhatTheLogRefusesAndTakesAgainIsReportedOnce) {
  Start(/*waiting_bytes_max=*/1000, std::make_shared<NotingObserver>(*this));
  const auto post = [&](const char* name) { EXPECT_TRUE(Post(name, {}, MayBlock::kYes)); };
  post("a");
  log_.failed = true;
  log_.result = absl::UnavailableError("full");
  post("b");
  post("c");
  log_.result = absl::OkStatus();  // A deletion, which a full disk takes.
  post("d");
  log_.failed = false;
  post("e");
  post("f");
  EXPECT_THAT(Finish(),
              ElementsAre("stage a", "publish a", "answer a OK",                             //
                          "stage b", "refused: full", "rollback b", "answer b UNAVAILABLE",  //
                          "stage c", "rollback c", "answer c UNAVAILABLE",                   //
                          "stage d", "publish d", "answer d OK",                             //
                          "stage e", "taken", "publish e", "answer e OK",                    //
                          "stage f", "publish f", "answer f OK"));
}

class UnknownOutcomeTest : public CommitterTest {
 protected:
  // The log does not know whether it has the write "held". "a" is posted before that is known.
  void CommitWithUnknownOutcome() {
    Start();
    HoldUp();
    log_.result = WithUnknownOutcome(absl::UnavailableError("no answer"));
    log_.gate.Notify();
    Await("answer held UNAVAILABLE");
    EXPECT_TRUE(Post("a"));
    Await("answer a UNAVAILABLE");
    log_.result = absl::OkStatus();
  }
};

TEST_F(UnknownOutcomeTest, AWriteIsAnsweredAtOnceAndPublishedOnceItIsKnownThatTheLogHasIt) {
  CommitWithUnknownOutcome();
  log_.on_settled(true);
  Await("publish held");
  EXPECT_TRUE(Post("b"));
  EXPECT_THAT(Finish(), ElementsAre("stage held", "answer held UNAVAILABLE", "answer a UNAVAILABLE",
                                    "publish held", "stage b", "publish b", "answer b OK"));
}

TEST_F(UnknownOutcomeTest, AWriteIsRolledBackOnceItIsKnownThatTheLogHasItNever) {
  CommitWithUnknownOutcome();
  log_.on_settled(false);
  Await("rollback held");
  EXPECT_TRUE(Post("b"));
  EXPECT_THAT(Finish(), ElementsAre("stage held", "answer held UNAVAILABLE", "answer a UNAVAILABLE",
                                    "rollback held", "stage b", "publish b", "answer b OK"));
}

TEST_F(UnknownOutcomeTest, AWriteThatIsPostedLaterSettlesItFirst) {
  CommitWithUnknownOutcome();
  log_.on_settled(true);
  EXPECT_TRUE(Post("b", {}, MayBlock::kYes));
  EXPECT_THAT(Finish(), ElementsAre("stage held", "answer held UNAVAILABLE", "answer a UNAVAILABLE",
                                    "publish held", "stage b", "publish b", "answer b OK"));
}

TEST_F(UnknownOutcomeTest, AWriteThatStageRefusedKeepsItsOwnError) {
  log_.result = WithUnknownOutcome(absl::UnavailableError("no answer"));
  Start();
  EXPECT_TRUE(Post("a", {.alone = true, .staged = absl::InvalidArgumentError("refused")}));
  Await("answer a INVALID_ARGUMENT");
  // The group had no write that was staged, so nothing is unsettled.
  EXPECT_TRUE(Post("b"));
  Await("answer b UNAVAILABLE");
  EXPECT_THAT(Finish(), ElementsAre("stage a", "answer a INVALID_ARGUMENT", "stage b",
                                    "answer b UNAVAILABLE"));
}

// What the stores show must not lack what the log has.
TEST_F(UnknownOutcomeTest, TheLogIsToldWhenAllThatItHasIsPublished) {
  log_.on_published = [this] { Note("shown"); };
  CommitWithUnknownOutcome();
  log_.on_settled(true);
  Await("shown");
  EXPECT_TRUE(Post("b"));
  EXPECT_THAT(Finish(),
              ElementsAre("stage held", "answer held UNAVAILABLE", "answer a UNAVAILABLE",
                          "publish held", "shown", "stage b", "publish b", "answer b OK", "shown"));
}

TEST_F(UnknownOutcomeTest, TheEndLeavesItOpen) {
  CommitWithUnknownOutcome();
  committer_.reset();
  EXPECT_EQ(log_.on_settled, nullptr);
  EXPECT_THAT(Finish(),
              ElementsAre("stage held", "answer held UNAVAILABLE", "answer a UNAVAILABLE"));
}

TEST_F(CommitterTest, WritesAreSeenAndAnsweredWithoutALog) {
  has_log_ = false;
  Start();
  EXPECT_TRUE(Post("a"));
  EXPECT_THAT(Finish(), ElementsAre("stage a", "publish a", "answer a OK"));
  EXPECT_THAT(log_.syncs(), IsEmpty());
}

}  // namespace
}  // namespace softlookup
