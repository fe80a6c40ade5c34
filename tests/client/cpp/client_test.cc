#include "softlookup/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "tests/client/scripted_service.h"
#include "tests/testing/closed_port.h"
#include "tests/testing/patient_options.h"

namespace softlookup {
namespace {

using ::softlookup::testing::ClosedPort;
using ::softlookup::testing::DetailedStatus;
using ::softlookup::testing::PatientOptions;
using ::softlookup::testing::ScriptedService;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

const grpc::Status kUnavailable(grpc::StatusCode::UNAVAILABLE, "not yet");

class ClientTest : public ::testing::Test {
 protected:
  static ClientOptions Options() {
    ClientOptions options = PatientOptions();
    options.retry.attempts_max = 4;
    options.retry.backoff_min = absl::Milliseconds(1);
    options.retry.backoff_max = absl::Milliseconds(1);
    return options;
  }

  Client Connect(const ClientOptions& options = Options()) {
    return *Client::Connect(service_.address(), options);
  }

  // A lookup that fails with `failures` in turn, then succeeds.
  void FailLookups(std::vector<grpc::Status> failures) {
    service_.lookup = [this, failures](grpc::ServerContext*, const v1::LookupRequest& request,
                                       v1::LookupResponse* response) {
      const std::size_t call = calls_++;
      *response->mutable_values() = request.queries();
      for (std::uint32_t row = 0; row < request.queries().rows(); ++row) response->add_stats();
      return call < failures.size() ? failures[call] : grpc::Status::OK;
    };
  }

  const FloatMatrix queries_{.rows = 1, .cols = 2, .data = {0.5f, -1}};
  std::atomic<std::size_t> calls_ = 0;
  absl::Notification released_;
  ScriptedService service_;  // Last: its handlers use the above until it is gone.
};

TEST_F(ClientTest, ConnectRefusesAnEmptyAddressAndOptionsOutOfRange) {
  const auto refuses = [](void (*change)(ClientOptions*)) {
    ClientOptions options;
    change(&options);
    return absl::IsInvalidArgument(Client::Connect("127.0.0.1:1", options).status());
  };
  EXPECT_TRUE(absl::IsInvalidArgument(Client::Connect("").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Client::Connect("127.0.0.1:83638").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Client::Connect("localhost:0").status()));
  EXPECT_TRUE(Client::Connect("unix:/tmp/a:b").ok());
  EXPECT_TRUE(Client::Connect("127.0.0.1:1").ok());
  EXPECT_TRUE(refuses([](ClientOptions* o) { o->deadline = absl::ZeroDuration(); }));
  EXPECT_TRUE(refuses([](ClientOptions* o) { o->retry.attempts_max = 0; }));
  EXPECT_TRUE(refuses([](ClientOptions* o) { o->retry.backoff_max = absl::Milliseconds(1); }));
  EXPECT_TRUE(refuses([](ClientOptions* o) { o->message_bytes_max = 0; }));
  EXPECT_TRUE(refuses([](ClientOptions* o) { o->keepalive_interval = -absl::Seconds(1); }));
}

TEST_F(ClientTest, ADeadlineThatIsOverAtOnceIsRefused) {
  for (const absl::Duration deadline : {absl::ZeroDuration(), absl::Seconds(-1)}) {
    const absl::Status status = Connect().GetStore("s", {.deadline = deadline}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("deadline must be positive"));
  }
}

TEST_F(ClientTest, CreateStoreReturnsWhatTheServerMade) {
  service_.create_store = [](grpc::ServerContext*, const v1::CreateStoreRequest& request,
                             v1::Store* store) {
    *store = request.store();
    store->set_revision(1);
    return grpc::Status::OK;
  };
  v1::Store store;
  store.set_name("acme/users");
  store.set_key_dim(3);
  const auto made = Connect().CreateStore(store);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->name(), "acme/users");
  EXPECT_EQ(made->key_dim(), 3u);
  EXPECT_EQ(made->revision(), 1u);
}

TEST_F(ClientTest, ListStoresWalksEveryPage) {
  service_.list_stores = [](grpc::ServerContext*, const v1::ListStoresRequest& request,
                            v1::ListStoresResponse* page) {
    EXPECT_EQ(request.prefix(), "s");
    const int index = request.page_token().empty() ? 0 : std::stoi(request.page_token());
    page->add_stores()->set_name("s" + std::to_string(index));
    if (index < 2) page->set_next_page_token(std::to_string(index + 1));
    return grpc::Status::OK;
  };
  const auto stores = Connect().ListStores("s");
  ASSERT_TRUE(stores.ok()) << stores.status();
  ASSERT_EQ(stores->size(), 3u);
  EXPECT_EQ(stores->back().name(), "s2");
}

TEST_F(ClientTest, AListWhosePagesNameThemselvesAsTheNextIsAnError) {
  service_.list_stores = [this](auto*, const auto&, v1::ListStoresResponse* page) {
    // Without the check, the list would go on to this error, which ends the test.
    if (++calls_ > 10) return grpc::Status(grpc::StatusCode::ABORTED, "asked for ever");
    page->add_stores()->set_name("s");
    page->set_next_page_token("again");
    return grpc::Status::OK;
  };
  const auto stores = Connect().ListStores();
  EXPECT_TRUE(absl::IsInternal(stores.status())) << stores.status();
  EXPECT_EQ(calls_, 2u);
}

TEST_F(ClientTest, UpdateStoreSendsTheMask) {
  service_.update_store = [](grpc::ServerContext*, const v1::UpdateStoreRequest& request,
                             v1::Store* store) {
    EXPECT_THAT(request.update_mask().paths(), ElementsAre("score", "labels"));
    *store = request.store();
    return grpc::Status::OK;
  };
  EXPECT_TRUE(Connect().UpdateStore(v1::Store(), {"score", "labels"}).ok());
}

TEST_F(ClientTest, RenameStoreSendsBothNamesAndWhetherToReplace) {
  std::vector<bool> replace;
  service_.rename_store = [&](grpc::ServerContext*, const v1::RenameStoreRequest& request,
                              v1::RenameStoreResponse* response) {
    replace.push_back(request.replace());
    response->mutable_store()->set_name(request.store() + " to " + request.new_name());
    response->mutable_replaced()->set_revision(7);
    return grpc::Status::OK;
  };
  Client client = Connect();
  const auto renamed = client.RenameStore("next", "people");
  ASSERT_TRUE(renamed.ok()) << renamed.status();
  EXPECT_EQ(renamed->store().name(), "next to people");
  EXPECT_EQ(renamed->replaced().revision(), 7u);
  EXPECT_TRUE(client.RenameStore("next", "people", {.replace = true}).ok());
  EXPECT_THAT(replace, ElementsAre(false, true));
}

TEST_F(ClientTest, CompactStoreSendsTheNameAndWhetherMemoriesMayEnd) {
  std::vector<bool> end_memories;
  service_.compact_store = [&](grpc::ServerContext*, const v1::CompactStoreRequest& request,
                               v1::CompactStoreResponse* response) {
    end_memories.push_back(request.end_memories());
    response->mutable_store()->set_name(request.name());
    response->set_dropped_rows(7);
    response->set_compacted_blocks(2);
    return grpc::Status::OK;
  };
  Client client = Connect();
  const auto compacted = client.CompactStore("people");
  ASSERT_TRUE(compacted.ok()) << compacted.status();
  EXPECT_EQ(compacted->store().name(), "people");
  EXPECT_EQ(compacted->dropped_rows(), 7u);
  EXPECT_EQ(compacted->compacted_blocks(), 2u);
  EXPECT_TRUE(client.CompactStore("people", {.end_memories = true}).ok());
  EXPECT_THAT(end_memories, ElementsAre(false, true));
}

TEST_F(ClientTest, LookupSendsItsOptionsAndReadsTheWholeAnswer) {
  service_.lookup = [](grpc::ServerContext*, const v1::LookupRequest& request,
                       v1::LookupResponse* response) {
    EXPECT_EQ(request.store(), "people");
    EXPECT_EQ(request.queries().data().size(), 8u);
    EXPECT_EQ(request.options().top_k(), 3u);
    EXPECT_EQ(request.filter().last(), 9u);
    EXPECT_EQ(request.source(), v1::SOURCE_ROWS_AND_MEMORY);
    EXPECT_EQ(request.memory(), "slow");
    EXPECT_EQ(request.min_revision(), 4u);
    EXPECT_TRUE(request.linearizable());
    *response->mutable_values() = request.queries();
    response->add_stats()->set_log_sum_exp(-std::numeric_limits<double>::infinity());
    auto* weights = response->add_weights();
    weights->add_positions(7);
    weights->add_weights(1);
    weights->add_scores(0.5);
    response->set_revision(5);
    response->set_row_count(12);
    return grpc::Status::OK;
  };
  LookupOptions options;
  options.attention.set_top_k(3);
  options.filter.set_last(9);
  options.source = v1::SOURCE_ROWS_AND_MEMORY;
  options.memory = "slow";
  options.min_revision = 4;
  options.linearizable = true;
  const auto answer = Connect().Lookup("people", queries_, options);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->values.data, queries_.data);
  ASSERT_EQ(answer->stats.size(), 1u);
  EXPECT_EQ(answer->stats[0].log_sum_exp(), -std::numeric_limits<double>::infinity());
  ASSERT_EQ(answer->weights.size(), 1u);
  EXPECT_THAT(answer->weights[0].positions(), ElementsAre(7));
  EXPECT_EQ(answer->revision, 5u);
  EXPECT_EQ(answer->row_count, 12u);
}

TEST_F(ClientTest, AnAnswerSaysHowFarItsLogSumExpMayBeOff) {
  service_.lookup = [](grpc::ServerContext*, const v1::LookupRequest& request,
                       v1::LookupResponse* response) {
    *response->mutable_values() = request.queries();
    response->add_stats();
    return grpc::Status::OK;
  };
  Client client = Connect();
  LookupOptions options;
  EXPECT_EQ(client.Lookup("people", queries_, options)->log_sum_exp_error, 1e-5);
  options.attention.set_max_error(1e-6);
  EXPECT_EQ(client.Lookup("people", queries_, options)->log_sum_exp_error, 1e-5);
  options.attention.set_max_error(0.01);
  EXPECT_EQ(client.Lookup("people", queries_, options)->log_sum_exp_error, 0.01);
}

TEST_F(ClientTest, AnswerThatDoesNotFitTheQueriesIsAnError) {
  std::vector<v1::LookupResponse> answers(6);
  answers[0].mutable_values()->set_rows(2);
  answers[1].mutable_values()->set_rows(1);
  answers[1].add_stats();
  answers[1].add_weights()->add_positions(7);
  answers[2].mutable_values()->set_rows(1);
  answers[2].add_weights();
  answers[3].mutable_values()->set_rows(1);  // No statistics.
  answers[4].mutable_values()->set_rows(1);
  answers[4].add_stats();  // No weights.
  answers[5].mutable_values()->set_rows(1);
  answers[5].add_stats();
  v1::QueryWeights* weights = answers[5].add_weights();
  weights->add_positions(7);
  weights->add_weights(1);
  weights->add_scores(1);
  weights->add_has_ids(true);  // No ids.
  LookupOptions with_weights;
  with_weights.attention.set_weights(v1::WEIGHTS_MODE_TOP);
  Client client = Connect();
  for (const v1::LookupResponse& answer : answers) {
    service_.lookup = [&](grpc::ServerContext*, const v1::LookupRequest&,
                          v1::LookupResponse* response) {
      *response = answer;
      return grpc::Status::OK;
    };
    EXPECT_TRUE(absl::IsInternal(client.Lookup("people", queries_, with_weights).status()));
  }
}

TEST_F(ClientTest, AWeightThatIsNotFiniteIsAnError) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double listed = 0.5, remaining = 0.5;
  const auto answer = [&](auto* response) {
    response->mutable_values()->set_rows(1);
    response->add_stats();
    v1::QueryWeights* weights = response->add_weights();
    weights->add_positions(7);
    weights->add_scores(1);
    weights->add_weights(listed);
    weights->set_remaining_weight(remaining);
    return grpc::Status::OK;
  };
  service_.lookup = [&](auto*, const auto&, auto* response) { return answer(response); };
  service_.attend = [&](auto*, const auto&, auto* response) { return answer(response); };
  v1::AttendRequest attend;
  attend.mutable_queries()->set_rows(1);
  Client client = Connect();
  EXPECT_TRUE(client.Lookup("people", queries_).ok());
  EXPECT_TRUE(client.Attend(attend).ok());
  for (const double bad : {std::nan(""), kInfinity, -kInfinity}) {
    for (double* const weight : {&listed, &remaining}) {
      *weight = bad;
      for (const absl::Status& status :
           {client.Lookup("people", queries_).status(), client.Attend(attend).status()}) {
        EXPECT_TRUE(absl::IsInternal(status)) << status;
        EXPECT_EQ(status.message(), "the server's answer has a weight that is not finite");
      }
      *weight = 0.5;
    }
  }
}

TEST_F(ClientTest, MatrixOfTheWrongSizeIsRefusedBeforeAnythingIsSent) {
  FailLookups({});
  const auto answer = Connect().Lookup("people", FloatMatrixView(queries_.data, 2, 2));
  EXPECT_EQ(answer.status(),
            absl::InvalidArgumentError(absl::StrCat(
                "queries: a 2 x 2 matrix needs 4 elements, not ", queries_.data.size())));
  EXPECT_EQ(Connect().Append("people", {queries_.data, 2, 2}, queries_).status().message(),
            absl::StrCat("keys: a 2 x 2 matrix needs 4 elements, not ", queries_.data.size()));
  EXPECT_EQ(calls_, 0u);
}

TEST_F(ClientTest, MessageOverTheLimitIsRefused) {
  FailLookups({});
  ClientOptions options = Options();
  options.message_bytes_max = 1000;
  const FloatMatrix large{.rows = 1, .cols = 1000, .data = std::vector<float>(1000)};
  const auto answer = Connect(options).Lookup("people", large);
  EXPECT_TRUE(absl::IsResourceExhausted(answer.status())) << answer.status();
  EXPECT_EQ(calls_, 0u);
}

TEST_F(ClientTest, FailureKeepsItsCodeMessageReasonAndMetadata) {
  FailLookups({DetailedStatus(grpc::StatusCode::NOT_FOUND, "no store \"people\"", "STORE_NOT_FOUND",
                              {{"store", "people"}}, absl::Milliseconds(1500))});
  const absl::Status status = Connect().Lookup("people", queries_).status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_EQ(status.message(), "no store \"people\"");
  EXPECT_EQ(ErrorReason(status), "STORE_NOT_FOUND");
  EXPECT_THAT(ErrorMetadata(status), ElementsAre(Pair("store", "people")));
  EXPECT_EQ(RetryDelay(status), absl::Milliseconds(1500));
}

TEST_F(ClientTest, FailureWithoutDetailsHasNoReason) {
  FailLookups({{grpc::StatusCode::INTERNAL, "oh", "not a google.rpc.Status"}});
  const absl::Status status = Connect().Lookup("people", queries_).status();
  EXPECT_TRUE(absl::IsInternal(status));
  EXPECT_EQ(ErrorReason(status), "");
  EXPECT_TRUE(ErrorMetadata(status).empty());
  EXPECT_FALSE(RetryDelay(status).has_value());
}

TEST_F(ClientTest, LookupIsRetriedWhileTheServerIsUnavailable) {
  FailLookups({kUnavailable, kUnavailable, kUnavailable});
  const auto answer = Connect().Lookup("people", queries_);
  EXPECT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(calls_, 4u);
}

TEST_F(ClientTest, LookupGivesUpAfterTheLastAttempt) {
  FailLookups(std::vector<grpc::Status>(10, kUnavailable));
  EXPECT_TRUE(absl::IsUnavailable(Connect().Lookup("people", queries_).status()));
  EXPECT_EQ(calls_, 4u);
}

TEST_F(ClientTest, FullQueueIsRetriedIfTheServerSaysWhen) {
  FailLookups({DetailedStatus(grpc::StatusCode::RESOURCE_EXHAUSTED, "", "QUEUE_FULL", {},
                              absl::Milliseconds(1)),
               DetailedStatus(grpc::StatusCode::RESOURCE_EXHAUSTED, "", "ANSWER_TOO_LARGE")});
  EXPECT_EQ(ErrorReason(Connect().Lookup("people", queries_).status()), "ANSWER_TOO_LARGE");
  EXPECT_EQ(calls_, 2u);
}

TEST_F(ClientTest, WaitThatWouldOutlastTheDeadlineIsNotBegun) {
  FailLookups({DetailedStatus(grpc::StatusCode::UNAVAILABLE, "", "LOADING", {}, absl::Hours(1))});
  EXPECT_EQ(ErrorReason(Connect().Lookup("people", queries_).status()), "LOADING");
  EXPECT_EQ(calls_, 1u);
}

TEST_F(ClientTest, PushbackTrailerForbidsARetry) {
  service_.lookup = [this](grpc::ServerContext* context, const v1::LookupRequest&,
                           v1::LookupResponse*) {
    ++calls_;
    context->AddTrailingMetadata("grpc-retry-pushback-ms", "-1");
    return kUnavailable;
  };
  EXPECT_TRUE(absl::IsUnavailable(Connect().Lookup("people", queries_).status()));
  EXPECT_EQ(calls_, 1u);
}

TEST_F(ClientTest, AppendIsSentOnceUnlessAWriterMakesItExactlyOnce) {
  service_.append = [this](grpc::ServerContext*, const v1::AppendRequest&, v1::AppendResponse*) {
    return calls_++ == 0 ? kUnavailable : grpc::Status::OK;
  };
  Client client = Connect();
  EXPECT_TRUE(absl::IsUnavailable(client.Append("people", queries_, queries_).status()));
  EXPECT_EQ(calls_, 1u);

  calls_ = 0;
  v1::AppendRequest request;
  request.set_writer("loader");
  EXPECT_TRUE(absl::IsUnavailable(client.Append(request).status()));
  EXPECT_EQ(calls_, 1u);

  calls_ = 0;
  request.set_sequence(1);
  EXPECT_TRUE(client.Append(request).ok());
  EXPECT_EQ(calls_, 2u);
}

TEST_F(ClientTest, CreateUpdateRenameCompactAndDeleteAreSentOnce) {
  const auto fail = [this](grpc::ServerContext*, const auto&, auto*) {
    ++calls_;
    return kUnavailable;
  };
  service_.create_store = fail;
  service_.update_store = fail;
  service_.rename_store = fail;
  service_.compact_store = fail;
  service_.delete_store = fail;
  Client client = Connect();
  EXPECT_TRUE(absl::IsUnavailable(client.CreateStore(v1::Store()).status()));
  EXPECT_TRUE(absl::IsUnavailable(client.UpdateStore(v1::Store(), {"score"}).status()));
  EXPECT_TRUE(absl::IsUnavailable(client.RenameStore("next", "people").status()));
  EXPECT_TRUE(absl::IsUnavailable(client.CompactStore("people").status()));
  EXPECT_TRUE(absl::IsUnavailable(client.DeleteStore("people")));
  EXPECT_EQ(calls_, 5u);
}

TEST_F(ClientTest, DeadlineEndsACallThatHangs) {
  service_.get_memory = [this](grpc::ServerContext*, const v1::GetMemoryRequest&, v1::Memory*) {
    released_.WaitForNotification();
    return grpc::Status::OK;
  };
  const auto memory =
      Connect().GetMemory(v1::GetMemoryRequest(), {.deadline = absl::Milliseconds(50)});
  EXPECT_TRUE(absl::IsDeadlineExceeded(memory.status())) << memory.status();
  EXPECT_THAT(std::string(memory.status().message()), HasSubstr("(GetMemory had 50ms)"));
  EXPECT_EQ(ErrorReason(memory.status()), "");
  released_.Notify();
}

TEST_F(ClientTest, DeadlineThatTheServerSaysHasPassedKeepsItsMessage) {
  service_.get_memory = [](grpc::ServerContext*, const v1::GetMemoryRequest&, v1::Memory*) {
    return DetailedStatus(grpc::StatusCode::DEADLINE_EXCEEDED, "late", "DEADLINE_EXCEEDED");
  };
  EXPECT_EQ(Connect().GetMemory(v1::GetMemoryRequest()).status().message(), "late");
}

TEST_F(ClientTest, HealthTellsWhetherTheServerTakesCalls) {
  Client client = Connect();
  EXPECT_EQ(*client.Health(), ServingStatus::kServing);
  EXPECT_EQ(*client.Health("softlookup.v1.SoftLookup"), ServingStatus::kServing);
  EXPECT_TRUE(absl::IsNotFound(client.Health("no.such.Service").status()));
  service_.SetServing(false);
  EXPECT_EQ(*client.Health(), ServingStatus::kNotServing);
}

TEST(UnreachableServerTest, IsUnavailableWithoutAReason) {
  const ClosedPort port;
  const absl::Status status =
      Client::Connect(port.address(), PatientOptions())->GetStore("people").status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(ErrorReason(status), "");
}

}  // namespace
}  // namespace softlookup
