#include "client/tool/lookup_batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "softlookup/client.h"
#include "tests/client/scripted_service.h"
#include "tests/testing/patient_options.h"

namespace softlookup::tool {
namespace {

using ::softlookup::testing::DetailedStatus;
using ::softlookup::testing::PatientOptions;
using ::softlookup::testing::ScriptedService;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A server whose answer to a query is the query. The first call is answered as of the revision 7,
// later ones as of `later_revision_`. It refuses the query that equals `refused_`.
class LookupBatchesTest : public ::testing::Test {
 protected:
  LookupBatchesTest() {
    service_.lookup = [this](auto*, const v1::LookupRequest& request,
                             v1::LookupResponse* response) {
      const FloatMatrix queries = *FloatMatrix::FromProto(request.queries());
      {
        absl::MutexLock lock(&mutex_);
        sizes_.push_back(queries.rows);
        const bool is_first = sizes_.size() == 1;
        (is_first ? first_min_revisions_ : later_min_revisions_).push_back(request.min_revision());
        response->set_revision(is_first ? 7 : later_revision_);
        causal_offsets_.push_back(request.options().causal_offset());
      }
      if (queries.rows > rows_max_) {
        return DetailedStatus(grpc::StatusCode::INVALID_ARGUMENT, "too many", "LIMIT_EXCEEDED");
      }
      for (std::uint32_t row = 0; row < queries.rows; ++row) {
        if (queries.data[row] == refused_) {
          return DetailedStatus(grpc::StatusCode::INVALID_ARGUMENT, "bad", "NON_FINITE_VALUE",
                                {{"field", "queries"}, {"row", std::to_string(row)}});
        }
      }
      *response->mutable_values() = request.queries();
      for (std::uint32_t row = 0; row < queries.rows; ++row) {
        response->add_stats();
        if (request.options().weights() != v1::WEIGHTS_MODE_UNSPECIFIED) response->add_weights();
      }
      return grpc::Status::OK;
    };
    service_.get_store = [this](auto*, const v1::GetStoreRequest&, v1::Store* store) {
      store->mutable_create_time()->set_nanos(created_ns_);
      return grpc::Status::OK;
    };
  }
  ~LookupBatchesTest() override { service_.Stop(); }

  // Looks up the queries 0, 1, ... and expects their answers in that order.
  absl::Status LookUp(std::uint32_t count, const v1::Store& store = {},
                      const LookupOptions& options = {}) {
    std::vector<float> queries(count);
    for (std::uint32_t i = 0; i < count; ++i) queries[i] = static_cast<float>(i);
    Client client = *Client::Connect(service_.address(), PatientOptions());
    return LookupInBatches(store, {queries, count, 1}, options, &client,
                           [&](const LookupAnswer& answer) {
                             for (const float value : answer.values.data) {
                               EXPECT_EQ(value, static_cast<float>(answered_++));
                             }
                           });
  }

  float refused_ = -1;
  std::uint64_t later_revision_ = 7;
  std::atomic<int> created_ns_ = 0;  // As LookUp()'s store has it by default.
  std::uint32_t rows_max_ = 10'000;
  std::uint64_t answered_ = 0;
  absl::Mutex mutex_;
  std::vector<std::uint32_t> sizes_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::uint64_t> causal_offsets_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::uint64_t> first_min_revisions_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::uint64_t> later_min_revisions_ ABSL_GUARDED_BY(mutex_);
  ScriptedService service_;
};

TEST_F(LookupBatchesTest, ManyQueriesAreAnsweredInOrderAndOnlyTheFirstWaitForARevision) {
  LookupOptions options;
  options.min_revision = 5;
  const absl::Status status = LookUp(20'000, {}, options);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(answered_, 20'000u);
  absl::MutexLock lock(&mutex_);
  EXPECT_EQ(sizes_.front(), kFirstCallQueries);
  EXPECT_GT(sizes_.size(), 2u);  // A call grows at most eightfold.
  EXPECT_THAT(first_min_revisions_, ElementsAre(5u));
  EXPECT_THAT(later_min_revisions_, Each(0u));
}

TEST_F(LookupBatchesTest, AnAnswerOfAnEarlierRevisionIsAnError) {
  later_revision_ = 3;
  const absl::Status lost_writes = LookUp(kFirstCallQueries + 1);
  EXPECT_TRUE(absl::IsAborted(lost_writes)) << lost_writes;
  EXPECT_THAT(std::string(lost_writes.message()),
              AllOf(HasSubstr("is at revision 3, after answers at revision 7"),
                    HasSubstr(absl::StrCat("queries answered before: ", kFirstCallQueries))));
  EXPECT_EQ(answered_, kFirstCallQueries);
  created_ns_ = 1;
  answered_ = 0;
  {
    absl::MutexLock lock(&mutex_);
    sizes_.clear();
  }
  const absl::Status replaced = LookUp(kFirstCallQueries + 1);
  EXPECT_TRUE(absl::IsAborted(replaced)) << replaced;
  EXPECT_THAT(std::string(replaced.message()), HasSubstr("since the first query"));
}

TEST_F(LookupBatchesTest, AnotherStoreOfTheNameIsAnErrorForSeveralCallsAlone) {
  created_ns_ = 1;
  EXPECT_TRUE(LookUp(kFirstCallQueries).ok());
  answered_ = 0;
  EXPECT_TRUE(absl::IsAborted(LookUp(kFirstCallQueries + 1)));
  refused_ = kFirstCallQueries;  // Such as a query of another dimension.
  answered_ = 0;
  EXPECT_TRUE(absl::IsAborted(LookUp(kFirstCallQueries + 1)));
}

TEST_F(LookupBatchesTest, CausalQueriesAreCountedThroughAllCalls) {
  LookupOptions options;
  options.attention.set_causal(true);
  options.attention.set_causal_offset(100);
  EXPECT_TRUE(LookUp(1000, {}, options).ok());
  absl::MutexLock lock(&mutex_);
  // Two calls may arrive in either order.
  std::vector<std::uint64_t> offsets = causal_offsets_;
  std::sort(offsets.begin(), offsets.end());
  ASSERT_GT(offsets.size(), 1u);
  EXPECT_EQ(offsets[0], 100u);
  EXPECT_EQ(offsets[1], 100u + kFirstCallQueries);
}

TEST_F(LookupBatchesTest, LargeAnswersMakeSmallCalls) {
  v1::Store store;
  store.set_value_dim(65'536);  // 256 KiB an answer.
  EXPECT_TRUE(LookUp(200, store).ok());
  store.set_value_dim(1);
  store.set_row_count(2'000'000);
  LookupOptions options;
  options.attention.set_weights(v1::WEIGHTS_MODE_ALL);
  answered_ = 0;
  EXPECT_TRUE(LookUp(3, store, options).ok());
  absl::MutexLock lock(&mutex_);
  EXPECT_LT(*std::max_element(sizes_.begin(), sizes_.end()), kFirstCallQueries);
  EXPECT_EQ(std::count(sizes_.begin(), sizes_.end(), 1u), 3);
}

TEST_F(LookupBatchesTest, AServersOwnLimitMakesSmallerCalls) {
  rows_max_ = 100;
  EXPECT_TRUE(LookUp(1000).ok());
  EXPECT_EQ(answered_, 1000u);
  rows_max_ = 5;
  answered_ = 0;
  EXPECT_TRUE(LookUp(30).ok());
  EXPECT_EQ(answered_, 30u);
  rows_max_ = 0;
  EXPECT_EQ(LookUp(30).message(), "too many");
}

TEST(NextCallQueriesTest, IsWhatTakesASecondWithinBounds) {
  EXPECT_EQ(NextCallQueries(64, absl::Milliseconds(500)), 128u);
  EXPECT_EQ(NextCallQueries(64, absl::Seconds(2)), 32u);
  EXPECT_EQ(NextCallQueries(64, absl::Milliseconds(1)), 512u);
  EXPECT_EQ(NextCallQueries(64, absl::ZeroDuration()), 512u);
  EXPECT_EQ(NextCallQueries(1, absl::Seconds(100)), 1u);
}

TEST_F(LookupBatchesTest, FewQueriesAreOneCallAndNoneAreOneToo) {
  for (const std::uint32_t count : {0u, 1u, kFirstCallQueries}) {
    EXPECT_TRUE(LookUp(count).ok());
    EXPECT_EQ(answered_, count);
    absl::MutexLock lock(&mutex_);
    EXPECT_EQ(sizes_, std::vector<std::uint32_t>{count});
    sizes_.clear();
    answered_ = 0;
  }
}

TEST_F(LookupBatchesTest, AnErrorNamesTheQueryAmongAll) {
  refused_ = kFirstCallQueries + 6;
  const absl::Status status = LookUp(1000);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  // How many queries are in the calls before depends on the time of the first.
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr(absl::StrCat("; that is query 70 (from 0); queries answered before: ", answered_)));
  EXPECT_GE(answered_, kFirstCallQueries);
}

TEST_F(LookupBatchesTest, AnErrorOfTheOnlyCallIsAsItIs) {
  refused_ = 6;
  EXPECT_EQ(LookUp(10).message(), "bad");
  EXPECT_EQ(answered_, 0u);
}

}  // namespace
}  // namespace softlookup::tool
