// Rows with ids and labels, filters, deletion, export, memories, projections and attention over a
// request's own matrices, as a foreign client meets them: bare messages to the real server.
//
// Random cases print SOFTLOOKUP_TEST_SEED=N when they fail; with that in the environment they start
// from there.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "absl/time/clock.h"
#include "core/attention/reference.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "tests/integration/integration_test.h"
#include "tests/testing/golden.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::uint64_t FirstSeed() {
  const char* seed = std::getenv("SOFTLOOKUP_TEST_SEED");
  return seed == nullptr ? 20'260'101 : std::strtoull(seed, nullptr, 10);
}

MATCHER(IsGrpcOk, "") {
  *result_listener << arg.error_code() << ": " << arg.error_message();
  return arg.ok();
}

MATCHER_P2(IsGrpcError, code, text, "") {
  *result_listener << "with " << arg.error_code() << ": " << arg.error_message();
  return arg.error_code() == code && arg.error_message().find(text) != std::string::npos;
}

// The reason in a failed call's trailer.
std::string ReasonIn(const grpc::Status& status) {
  google::rpc::Status details;
  google::rpc::ErrorInfo info;
  if (details.ParseFromString(status.error_details()) && details.details_size() > 0) {
    details.details(0).UnpackTo(&info);
  }
  return info.domain() == "softlookup" ? info.reason() : "";
}

std::vector<float> Floats(const v1::Matrix& matrix) {
  std::vector<float> floats(matrix.data().size() / sizeof(float));
  if (!floats.empty()) std::memcpy(floats.data(), matrix.data().data(), matrix.data().size());
  return floats;
}

std::vector<double> Doubles(const v1::Matrix& matrix) {
  const auto doubles = DoublesFromProto(matrix);
  EXPECT_THAT(doubles, IsOk());
  return doubles.ok() ? *doubles : std::vector<double>();
}

MatrixView CoreView(const std::vector<float>& floats, std::int64_t cols) {
  return {
      .data = floats.data(), .rows = static_cast<std::int64_t>(floats.size()) / cols, .cols = cols};
}

// inputs [N, input_dim] times the transpose of map [dim, input_dim], rounded once.
std::vector<float> Projected(const std::vector<float>& inputs, const std::vector<float>& map,
                             std::int64_t input_dim) {
  std::vector<float> projected;
  for (std::size_t x = 0; x < inputs.size(); x += input_dim) {
    for (std::size_t w = 0; w < map.size(); w += input_dim) {
      double sum = 0;
      for (std::int64_t i = 0; i < input_dim; ++i) {
        sum += static_cast<double>(map[w + i]) * inputs[x + i];
      }
      projected.push_back(static_cast<float>(sum));
    }
  }
  return projected;
}

v1::AttentionOptions ToMessage(const AttentionOptions& options) {
  v1::AttentionOptions message;
  message.set_score(static_cast<v1::Score>(options.score));
  message.set_mode(static_cast<v1::Mode>(options.mode));
  if (options.temperature) message.set_temperature(*options.temperature);
  if (options.min_score) message.set_min_score(*options.min_score);
  if (options.recency_decay) message.set_recency_decay(*options.recency_decay);
  message.set_top_k(options.top_k);
  message.set_causal(options.causal);
  message.set_causal_offset(options.causal_offset);
  message.set_weights(v1::WEIGHTS_MODE_ALL);
  return message;
}

std::vector<double> Dense(const v1::QueryWeights& weights, std::int64_t row_count) {
  std::vector<double> dense(row_count);
  for (int i = 0; i < weights.positions_size(); ++i) {
    dense.at(weights.positions(i)) = weights.weights(i);
  }
  return dense;
}

// Equal, or near.
void ExpectClose(double actual, double expected, const std::string& what) {
  if (actual == expected) return;
  EXPECT_NEAR(actual, expected, 1e-5) << what;
}

class RowsTest : public IntegrationTest {
 protected:
  template <typename Request, typename Response>
  grpc::Status Call(grpc::Status (v1::SoftLookup::Stub::*method)(grpc::ClientContext*,
                                                                 const Request&, Response*),
                    const Request& request, Response* response) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
    response->Clear();
    return (stub_.get()->*method)(&context, request, response);
  }
  grpc::Status Append(const v1::AppendRequest& request, v1::AppendResponse* response = nullptr) {
    v1::AppendResponse unused;
    return Call(&v1::SoftLookup::Stub::Append, request, response == nullptr ? &unused : response);
  }
  grpc::Status Lookup(const v1::LookupRequest& request, v1::LookupResponse* response) {
    return Call(&v1::SoftLookup::Stub::Lookup, request, response);
  }
  grpc::Status DeleteRows(const std::string& store, const v1::RowFilter& filter,
                          v1::DeleteRowsResponse* response) {
    v1::DeleteRowsRequest request;
    request.set_store(store);
    *request.mutable_filter() = filter;
    return Call(&v1::SoftLookup::Stub::DeleteRows, request, response);
  }
  grpc::Status GetMemory(const std::string& store, const std::string& name,
                         std::optional<std::uint64_t> begin, std::optional<std::uint64_t> end,
                         v1::Memory* response) {
    v1::GetMemoryRequest request;
    request.set_store(store);
    request.set_name(name);
    if (begin) request.set_begin(*begin);
    if (end) request.set_end(*end);
    return Call(&v1::SoftLookup::Stub::GetMemory, request, response);
  }
  grpc::Status CreateStore(const v1::Store& store) {
    v1::CreateStoreRequest request;
    *request.mutable_store() = store;
    v1::Store response;
    return Call(&v1::SoftLookup::Stub::CreateStore, request, &response);
  }
  v1::Store GetStore(const std::string& name) {
    v1::GetStoreRequest request;
    request.set_name(name);
    v1::Store store;
    EXPECT_THAT(Call(&v1::SoftLookup::Stub::GetStore, request, &store), IsGrpcOk());
    return store;
  }
  grpc::Status ReadRows(const v1::ReadRowsRequest& request,
                        std::vector<v1::ReadRowsResponse>* pages) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
    const auto reader = stub_->ReadRows(&context, request);
    pages->clear();
    v1::ReadRowsResponse page;
    while (reader->Read(&page)) pages->push_back(page);
    return reader->Finish();
  }
  // All rows of a store that a filter leaves.
  std::vector<v1::Row> RowsOf(const std::string& store, const v1::RowFilter& filter = {}) {
    v1::ReadRowsRequest request;
    request.set_store(store);
    *request.mutable_filter() = filter;
    std::vector<v1::ReadRowsResponse> pages;
    EXPECT_THAT(ReadRows(request, &pages), IsGrpcOk());
    std::vector<v1::Row> rows;
    for (const auto& page : pages) rows.insert(rows.end(), page.rows().begin(), page.rows().end());
    return rows;
  }
  std::vector<std::uint64_t> PositionsOf(const std::string& store,
                                         const v1::RowFilter& filter = {}) {
    std::vector<std::uint64_t> positions;
    for (const v1::Row& row : RowsOf(store, filter)) positions.push_back(row.position());
    return positions;
  }

  // Row i of the request has the id first_id + i, the key first_id + i and the value `value`.
  static v1::AppendRequest RowsWithIds(std::uint64_t first_id, int count, float value,
                                       v1::OnConflict on_conflict = v1::ON_CONFLICT_UNSPECIFIED) {
    v1::AppendRequest request;
    request.set_store("s");
    std::vector<float> keys;
    for (int i = 0; i < count; ++i) {
      keys.push_back(static_cast<float>(first_id + i));
      request.add_ids(first_id + i);
    }
    *request.mutable_keys() = Message(keys, 1);
    *request.mutable_values() = Message(std::vector<float>(count, value), 1);
    request.set_on_conflict(on_conflict);
    return request;
  }

  static v1::LookupRequest OneQuery() {
    v1::LookupRequest request;
    request.set_store("s");
    *request.mutable_queries() = Message({1}, 1);
    request.mutable_options()->set_weights(v1::WEIGHTS_MODE_ALL);
    return request;
  }
};

TEST_F(RowsTest, AllGoldenLookupsHoldWithTheirRowsFilteredById) {
  int cases = 0, filtered = 0;
  for (const GoldenLookup& golden : ReadGoldenLookups()) {
    SCOPED_TRACE(golden.name);
    const std::string name = "golden-" + std::to_string(cases++);
    Create(name, golden.key_dim, golden.value_dim, golden.num_heads);
    v1::AppendRequest append;
    append.set_store(name);
    *append.mutable_keys() = Message(golden.keys, golden.key_dim);
    *append.mutable_values() = Message(golden.values, golden.value_dim);
    for (std::int64_t j = 0; j < golden.row_count; ++j) append.add_ids(1000 + 7 * j);
    ASSERT_THAT(Append(append), IsGrpcOk());
    v1::LookupRequest lookup;
    lookup.set_store(name);
    *lookup.mutable_queries() = Message(golden.queries, golden.key_dim);
    *lookup.mutable_options() = ToMessage(golden.options);
    v1::RowFilter allow, exclude;
    allow.add_ids(1);  // Nobody's, so that the list is never empty.
    for (std::size_t j = 0; j < golden.allowed.size(); ++j) {
      (golden.allowed[j] ? allow.mutable_ids() : exclude.mutable_exclude_ids())->Add(1000 + 7 * j);
    }
    std::vector<v1::RowFilter> filters;
    if (golden.allowed.empty()) {
      filters = {v1::RowFilter()};
    } else {
      filters = {allow, exclude};
      ++filtered;
    }
    for (const v1::RowFilter& filter : filters) {
      *lookup.mutable_filter() = filter;
      v1::LookupResponse answer;
      ASSERT_THAT(Lookup(lookup, &answer), IsGrpcOk());
      EXPECT_LE(RelativeError(Floats(answer.values()), golden.expected_values), 1e-5);
      ASSERT_EQ(answer.stats_size(), static_cast<int>(golden.expected_stats.size()));
      ASSERT_EQ(answer.weights_size(), answer.stats_size());
      for (int i = 0; i < answer.stats_size(); ++i) {
        const v1::QueryStats& stats = answer.stats(i);
        const QueryStats& expected = golden.expected_stats[i];
        EXPECT_EQ(stats.counted_rows(), expected.counted_rows);
        EXPECT_EQ(stats.empty(), expected.counted_rows == 0);
        ExpectClose(stats.log_sum_exp(), expected.log_sum_exp, "log_sum_exp");
        ExpectClose(stats.max_logit(), expected.max_logit, "max_logit");
        ExpectClose(stats.entropy(), expected.entropy, "entropy");
        const v1::QueryWeights& weights = answer.weights(i);
        EXPECT_LE(RelativeError(Dense(weights, golden.row_count), golden.expected_weights[i]),
                  1e-5);
        ASSERT_EQ(weights.ids_size(), weights.positions_size());
        for (int j = 0; j < weights.ids_size(); ++j) {
          EXPECT_EQ(weights.ids(j), 1000 + 7 * weights.positions(j));
        }
      }
    }
  }
  EXPECT_EQ(cases, 59);
  EXPECT_EQ(filtered, 12);
}

TEST_F(RowsTest, AllGoldenMemoriesHoldAlsoAsOfAnEarlierRowAndAsReturnedByTheAppend) {
  const std::map<std::string, v1::MemoryKind> kinds = {
      {"AVERAGE", v1::MEMORY_KIND_AVERAGE},
      {"DECAYED_SUM", v1::MEMORY_KIND_DECAYED_SUM},
      {"DECAYED_AVERAGE", v1::MEMORY_KIND_DECAYED_AVERAGE},
      {"GATED", v1::MEMORY_KIND_GATED},
      {"GATED_AVERAGE", v1::MEMORY_KIND_GATED_AVERAGE}};
  int cases = 0;
  for (const GoldenMemory& golden : ReadGoldenMemories()) {
    SCOPED_TRACE(golden.kind + " of " + std::to_string(golden.row_count) + " rows");
    v1::Store store;
    store.set_name("memory-" + std::to_string(cases++));
    store.set_key_dim(golden.key_dim);
    store.set_value_dim(golden.value_dim);
    v1::MemorySpec* spec = store.add_memories();
    spec->set_name("m");
    spec->set_kind(kinds.at(golden.kind));
    spec->set_decay(golden.decay);
    if (!golden.gate.empty()) *spec->mutable_gate() = Message(golden.gate, golden.key_dim + 1);
    ASSERT_THAT(CreateStore(store), IsGrpcOk());
    const v1::Store created = GetStore(store.name());
    ASSERT_EQ(created.memories_size(), 1);
    EXPECT_EQ(created.memories(0).kind(), spec->kind());
    EXPECT_EQ(created.memories(0).decay(), golden.decay);
    EXPECT_EQ(Floats(created.memories(0).gate()), golden.gate);

    v1::AppendRequest append;
    append.set_store(store.name());
    *append.mutable_keys() = Message(golden.keys, golden.key_dim);
    *append.mutable_values() = Message(golden.values, golden.value_dim);
    append.add_return_memories("m");
    append.add_return_memories("average");
    v1::AppendResponse appended;
    ASSERT_THAT(Append(append, &appended), IsGrpcOk());
    ASSERT_EQ(appended.memories_size(), 2);
    EXPECT_EQ(appended.memories(1).name(), "average");
    EXPECT_EQ(appended.memories(1).weight(), golden.row_count);
    // Later rows do not change the past.
    *append.mutable_keys() = Message(std::vector<float>(3 * golden.key_dim, 5.0f), golden.key_dim);
    *append.mutable_values() =
        Message(std::vector<float>(3 * golden.value_dim, 5.0f), golden.value_dim);
    ASSERT_THAT(Append(append), IsGrpcOk());

    const auto check = [&](const v1::Memory& memory) {
      EXPECT_LE(RelativeError(Doubles(memory.key()), golden.expected_key), 1e-12);
      EXPECT_LE(RelativeError(Doubles(memory.value()), golden.expected_value), 1e-12);
      EXPECT_NEAR(memory.weight(), golden.expected_weight, 1e-12 * golden.expected_weight);
      EXPECT_EQ(memory.begin(), golden.begin);
      EXPECT_EQ(memory.end(), static_cast<std::uint64_t>(golden.row_count));
      EXPECT_EQ(memory.key().element_type(), v1::ELEMENT_TYPE_FLOAT64);
      EXPECT_EQ(memory.key().rows(), 1u);
      EXPECT_EQ(memory.value().cols(), static_cast<std::uint32_t>(golden.value_dim));
    };
    v1::Memory memory;
    ASSERT_THAT(GetMemory(store.name(), "m", golden.begin, golden.row_count, &memory), IsGrpcOk());
    EXPECT_EQ(memory.name(), "m");
    EXPECT_EQ(memory.revision(), 3u);
    check(memory);
    if (golden.begin == 0) check(appended.memories(0));
    if (golden.kind == "AVERAGE") {
      ASSERT_THAT(GetMemory(store.name(), "", golden.begin, golden.row_count, &memory), IsGrpcOk());
      EXPECT_EQ(memory.name(), "average");
      check(memory);
    } else {
      EXPECT_THAT(GetMemory(store.name(), "m", 1, golden.row_count, &memory),
                  IsGrpcError(grpc::StatusCode::INVALID_ARGUMENT, "begin"));
    }
  }
  EXPECT_EQ(cases, 30);
}

TEST_F(RowsTest, AnIdThatIsTakenFailsTheWholeAppend) {
  Create("s", 1, 1);
  ASSERT_THAT(Append(RowsWithIds(10, 3, 1)), IsGrpcOk());
  for (const auto on_conflict : {v1::ON_CONFLICT_UNSPECIFIED, v1::ON_CONFLICT_FAIL}) {
    const grpc::Status status = Append(RowsWithIds(12, 3, 2, on_conflict));
    EXPECT_THAT(status, IsGrpcError(grpc::StatusCode::ALREADY_EXISTS, "row 0"));
    EXPECT_EQ(ReasonIn(status), "ROW_EXISTS");
    const v1::Store store = GetStore("s");
    EXPECT_EQ(store.row_count(), 3u);
    EXPECT_EQ(store.live_row_count(), 3u);
    EXPECT_EQ(store.revision(), 2u);
  }
  // None of the refused ids is taken.
  EXPECT_THAT(Append(RowsWithIds(13, 3, 2)), IsGrpcOk());
}

TEST_F(RowsTest, ReplaceDeletesTheOldRowsAndAppendsTheNew) {
  Create("s", 1, 1);
  ASSERT_THAT(Append(RowsWithIds(10, 3, 1)), IsGrpcOk());
  v1::AppendResponse appended;
  ASSERT_THAT(Append(RowsWithIds(12, 2, 2, v1::ON_CONFLICT_REPLACE), &appended), IsGrpcOk());
  EXPECT_EQ(appended.first_position(), 3u);
  EXPECT_EQ(appended.appended_count(), 2u);
  EXPECT_EQ(appended.row_count(), 5u);
  EXPECT_EQ(appended.revision(), 3u);
  EXPECT_THAT(PositionsOf("s"), ElementsAre(0, 1, 3, 4));
  v1::RowFilter twelve;
  twelve.add_ids(12);
  const std::vector<v1::Row> rows = RowsOf("s", twelve);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].position(), 3u);
  EXPECT_THAT(Floats(rows[0].value()), ElementsAre(2));
  EXPECT_EQ(GetStore("s").live_row_count(), 4u);
  // Replaced once more it is the newest that goes.
  ASSERT_THAT(Append(RowsWithIds(12, 1, 3, v1::ON_CONFLICT_REPLACE)), IsGrpcOk());
  EXPECT_THAT(PositionsOf("s", twelve), ElementsAre(5));
  EXPECT_THAT(PositionsOf("s"), ElementsAre(0, 1, 4, 5));
}

TEST_F(RowsTest, SkipAppendsOnlyTheRowsWhoseIdsAreFree) {
  Create("s", 1, 1);
  ASSERT_THAT(Append(RowsWithIds(10, 3, 1)), IsGrpcOk());
  v1::AppendResponse appended;
  ASSERT_THAT(Append(RowsWithIds(11, 4, 2, v1::ON_CONFLICT_SKIP), &appended), IsGrpcOk());
  EXPECT_EQ(appended.appended_count(), 2u);
  EXPECT_EQ(appended.first_position(), 3u);
  EXPECT_EQ(appended.row_count(), 5u);
  const std::vector<v1::Row> rows = RowsOf("s");
  ASSERT_EQ(rows.size(), 5u);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(rows[i].id(), 10u + i);
    EXPECT_THAT(Floats(rows[i].key()), ElementsAre(10 + i));
    EXPECT_THAT(Floats(rows[i].value()), ElementsAre(i < 3 ? 1 : 2));
  }
  // The rows that were skipped are in no memory.
  v1::Memory memory;
  ASSERT_THAT(GetMemory("s", "", {}, {}, &memory), IsGrpcOk());
  EXPECT_EQ(memory.weight(), 5);
  EXPECT_NEAR(Doubles(memory.value())[0], (3 * 1 + 2 * 2) / 5.0, 1e-15);
  ASSERT_THAT(Append(RowsWithIds(10, 5, 3, v1::ON_CONFLICT_SKIP), &appended), IsGrpcOk());
  EXPECT_EQ(appended.appended_count(), 0u);
  EXPECT_EQ(appended.row_count(), 5u);
}

TEST_F(RowsTest, ADeletedRowsIdIsFreeAgain) {
  Create("s", 1, 1);
  ASSERT_THAT(Append(RowsWithIds(10, 3, 1)), IsGrpcOk());
  v1::RowFilter filter;
  filter.add_ids(11);
  v1::DeleteRowsResponse deleted;
  ASSERT_THAT(DeleteRows("s", filter, &deleted), IsGrpcOk());
  ASSERT_THAT(Append(RowsWithIds(11, 1, 2, v1::ON_CONFLICT_FAIL)), IsGrpcOk());
  EXPECT_THAT(PositionsOf("s", filter), ElementsAre(3));
}

TEST_F(RowsTest, EveryFieldOfAFilterLeavesItsRows) {
  Create("s", 1, 1);
  // Positions 0-5 with ids 10-15 and labels, 6 and 7 with neither.
  v1::AppendRequest append = RowsWithIds(10, 6, 1);
  for (const std::vector<std::string>& labels : std::vector<std::vector<std::string>>{
           {"red"}, {"red", "round"}, {"blue"}, {}, {"blue", "round", "old"}, {"old"}}) {
    append.add_row_labels()->mutable_labels()->Add(labels.begin(), labels.end());
  }
  ASSERT_THAT(Append(append), IsGrpcOk());
  append = RowsWithIds(16, 2, 1);
  append.clear_ids();
  ASSERT_THAT(Append(append), IsGrpcOk());

  struct Case {
    std::string what;
    std::function<void(v1::RowFilter&)> set;
    std::vector<std::uint64_t> positions;
  };
  const std::vector<Case> cases = {
      {"nothing", [](auto&) {}, {0, 1, 2, 3, 4, 5, 6, 7}},
      {"begin", [](auto& f) { f.set_begin(6); }, {6, 7}},
      {"begin at the end", [](auto& f) { f.set_begin(8); }, {}},
      {"end", [](auto& f) { f.set_end(2); }, {0, 1}},
      {"end 0", [](auto& f) { f.set_end(0); }, {}},
      {"begin and end",
       [](auto& f) {
         f.set_begin(2);
         f.set_end(4);
       },
       {2, 3}},
      {"last", [](auto& f) { f.set_last(3); }, {5, 6, 7}},
      {"last 0", [](auto& f) { f.set_last(0); }, {}},
      {"last of more than there are", [](auto& f) { f.set_last(~0ull); }, {0, 1, 2, 3, 4, 5, 6, 7}},
      {"last of a range",
       [](auto& f) {
         f.set_begin(1);
         f.set_end(5);
         f.set_last(2);
       },
       {3, 4}},
      {"any_labels", [](auto& f) { f.add_any_labels("red"); }, {0, 1}},
      {"any of two labels",
       [](auto& f) {
         f.add_any_labels("red");
         f.add_any_labels("old");
       },
       {0, 1, 4, 5}},
      {"a label that no row has", [](auto& f) { f.add_any_labels("green"); }, {}},
      {"any of a known and an unknown label",
       [](auto& f) {
         f.add_any_labels("green");
         f.add_any_labels("blue");
       },
       {2, 4}},
      {"no_labels", [](auto& f) { f.add_no_labels("round"); }, {0, 2, 3, 5, 6, 7}},
      {"none of an unknown label",
       [](auto& f) { f.add_no_labels("green"); },
       {0, 1, 2, 3, 4, 5, 6, 7}},
      {"any and no labels",
       [](auto& f) {
         f.add_any_labels("round");
         f.add_no_labels("old");
       },
       {1}},
      {"ids",
       [](auto& f) {
         f.add_ids(15);
         f.add_ids(11);
         f.add_ids(99);
       },
       {1, 5}},
      {"an id that no row has", [](auto& f) { f.add_ids(99); }, {}},
      {"exclude_ids",
       [](auto& f) {
         f.add_exclude_ids(10);
         f.add_exclude_ids(99);
       },
       {1, 2, 3, 4, 5, 6, 7}},
      {"ids and exclude_ids",
       [](auto& f) {
         f.add_ids(12);
         f.add_ids(13);
         f.add_exclude_ids(13);
       },
       {2}},
      {"all parts",
       [](auto& f) {
         f.set_begin(1);
         f.set_end(6);
         f.set_last(4);
         f.add_any_labels("blue");
         f.add_any_labels("old");
         f.add_no_labels("red");
         f.add_ids(12);
         f.add_ids(14);
         f.add_ids(15);
         f.add_exclude_ids(14);
       },
       {2, 5}}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    v1::RowFilter filter;
    c.set(filter);
    EXPECT_EQ(PositionsOf("s", filter), c.positions);
    v1::LookupRequest lookup = OneQuery();
    lookup.mutable_options()->set_temperature(100);
    *lookup.mutable_filter() = filter;
    v1::LookupResponse answer;
    ASSERT_THAT(Lookup(lookup, &answer), IsGrpcOk());
    std::vector<std::uint64_t> positions(answer.weights(0).positions().begin(),
                                         answer.weights(0).positions().end());
    std::sort(positions.begin(), positions.end());
    EXPECT_EQ(positions, c.positions);
    EXPECT_EQ(answer.stats(0).counted_rows(), c.positions.size());
    // A filter that leaves nothing is an answer.
    EXPECT_EQ(answer.stats(0).empty(), c.positions.empty());
    EXPECT_THAT(Floats(answer.values()),
                ElementsAre(::testing::FloatNear(c.positions.empty() ? 0 : 1, 1e-6)));
    if (c.positions.empty()) {
      EXPECT_EQ(answer.stats(0).log_sum_exp(), -kInfinity);
    }
    // Deleting takes the same rows: in a store of the same rows.
    if (c.what == "nothing") continue;
    v1::Store other;
    other.set_name("other");
    other.set_key_dim(1);
    other.set_value_dim(1);
    ASSERT_THAT(CreateStore(other), IsGrpcOk());
    for (const v1::Row& row : RowsOf("s")) {
      v1::AppendRequest copy;
      copy.set_store("other");
      *copy.mutable_keys() = row.key();
      *copy.mutable_values() = row.value();
      if (row.has_id()) copy.add_ids(row.id());
      *copy.add_row_labels()->mutable_labels() = row.labels();
      ASSERT_THAT(Append(copy), IsGrpcOk());
    }
    v1::DeleteRowsResponse deleted;
    ASSERT_THAT(DeleteRows("other", filter, &deleted), IsGrpcOk());
    EXPECT_EQ(deleted.deleted_count(), c.positions.size());
    std::vector<std::uint64_t> rest;
    for (std::uint64_t p = 0; p < 8; ++p) {
      if (std::find(c.positions.begin(), c.positions.end(), p) == c.positions.end()) {
        rest.push_back(p);
      }
    }
    EXPECT_EQ(PositionsOf("other"), rest);
    v1::DeleteStoreRequest drop;
    drop.set_name("other");
    v1::DeleteStoreResponse dropped;
    ASSERT_THAT(Call(&v1::SoftLookup::Stub::DeleteStore, drop, &dropped), IsGrpcOk());
  }
}

TEST_F(RowsTest, DeletingLeavesPositionsAndMemoriesAsTheyWere) {
  v1::Store store;
  store.set_name("s");
  store.set_key_dim(1);
  store.set_value_dim(1);
  v1::MemorySpec* spec = store.add_memories();
  spec->set_name("fading");
  spec->set_kind(v1::MEMORY_KIND_DECAYED_AVERAGE);
  spec->set_decay(0.9);
  ASSERT_THAT(CreateStore(store), IsGrpcOk());
  constexpr int kRows = 3000;  // Several blocks.
  const std::vector<float> values = NormalFloats(kRows, 3);
  v1::AppendRequest append = RowsWithIds(0, kRows, 0);
  *append.mutable_values() = Message(values, 1);
  ASSERT_THAT(Append(append), IsGrpcOk());
  v1::Memory average, fading, memory;
  ASSERT_THAT(GetMemory("s", "average", 7, 2500, &average), IsGrpcOk());
  ASSERT_THAT(GetMemory("s", "fading", {}, 2500, &fading), IsGrpcOk());

  v1::RowFilter filter;
  v1::DeleteRowsResponse deleted;
  const grpc::Status refused = DeleteRows("s", filter, &deleted);
  EXPECT_THAT(refused, IsGrpcError(grpc::StatusCode::INVALID_ARGUMENT, "filter"));
  EXPECT_EQ(ReasonIn(refused), "INVALID_OPTION");
  EXPECT_EQ(GetStore("s").revision(), 2u);

  filter.set_begin(10);
  filter.set_end(2900);
  ASSERT_THAT(DeleteRows("s", filter, &deleted), IsGrpcOk());
  EXPECT_EQ(deleted.deleted_count(), 2890u);
  EXPECT_EQ(deleted.revision(), 3u);
  EXPECT_EQ(GetStore("s").row_count(), static_cast<std::uint64_t>(kRows));
  EXPECT_EQ(GetStore("s").live_row_count(), 110u);
  // What is gone is gone, and that is no error.
  ASSERT_THAT(DeleteRows("s", filter, &deleted), IsGrpcOk());
  EXPECT_EQ(deleted.deleted_count(), 0u);
  filter.Clear();
  filter.add_ids(20);
  ASSERT_THAT(DeleteRows("s", filter, &deleted), IsGrpcOk());
  EXPECT_EQ(deleted.deleted_count(), 0u);

  for (const v1::Row& row : RowsOf("s")) {
    EXPECT_TRUE(row.position() < 10 || row.position() >= 2900);
    EXPECT_EQ(row.id(), row.position());
    EXPECT_THAT(Floats(row.value()), ElementsAre(values[row.position()]));
  }
  EXPECT_EQ(RowsOf("s").size(), 110u);
  ASSERT_THAT(GetMemory("s", "average", 7, 2500, &memory), IsGrpcOk());
  EXPECT_EQ(memory.value().data(), average.value().data());
  EXPECT_EQ(memory.weight(), 2493);
  ASSERT_THAT(GetMemory("s", "fading", {}, 2500, &memory), IsGrpcOk());
  EXPECT_EQ(memory.value().data(), fading.value().data());
  // The next row goes behind all rows ever appended.
  v1::AppendResponse appended;
  ASSERT_THAT(Append(RowsWithIds(kRows, 1, 1), &appended), IsGrpcOk());
  EXPECT_EQ(appended.first_position(), static_cast<std::uint64_t>(kRows));
}

TEST_F(RowsTest, AnExportHasTheExactBitsInPositionOrder) {
  constexpr std::int64_t kRows = 2500, kKeyDim = 5, kValueDim = 3;
  Create("s", kKeyDim, kValueDim);
  std::vector<float> keys = NormalFloats(kRows * kKeyDim, 1);
  std::vector<float> values = NormalFloats(kRows * kValueDim, 2);
  // Bits that arithmetic would lose.
  keys[0] = -0.0f;
  keys[1] = std::numeric_limits<float>::denorm_min();
  keys[2] = -std::numeric_limits<float>::max();
  values[kValueDim * 1500] = -std::numeric_limits<float>::denorm_min();
  values[kValueDim * 1500 + 1] = -0.0f;
  for (std::int64_t begin = 0; begin < kRows;) {
    const std::int64_t count = std::min<std::int64_t>(kRows - begin, 1 + begin / 3);
    v1::AppendRequest append;
    append.set_store("s");
    *append.mutable_keys() = Message(
        {keys.begin() + begin * kKeyDim, keys.begin() + (begin + count) * kKeyDim}, kKeyDim);
    *append.mutable_values() =
        Message({values.begin() + begin * kValueDim, values.begin() + (begin + count) * kValueDim},
                kValueDim);
    if (begin % 2 == 0) {  // Ids and labels for some.
      for (std::int64_t i = 0; i < count; ++i) {
        append.add_ids(100'000 - (begin + i));
        append.add_row_labels()->add_labels("from " + std::to_string(begin));
      }
    }
    ASSERT_THAT(Append(append), IsGrpcOk());
    begin += count;
  }
  const std::uint64_t revision = GetStore("s").revision();
  for (const std::uint32_t page_rows : {0u, 1000u, 7u}) {
    SCOPED_TRACE(page_rows);
    v1::ReadRowsRequest request;
    request.set_store("s");
    request.set_page_rows(page_rows);
    std::vector<v1::ReadRowsResponse> pages;
    ASSERT_THAT(ReadRows(request, &pages), IsGrpcOk());
    std::int64_t position = 0;
    for (const v1::ReadRowsResponse& page : pages) {
      EXPECT_EQ(page.revision(), revision);
      if (page_rows > 0) {
        EXPECT_LE(page.rows_size(), static_cast<int>(page_rows));
      }
      for (const v1::Row& row : page.rows()) {
        ASSERT_EQ(row.position(), static_cast<std::uint64_t>(position));
        ASSERT_EQ(row.key().rows(), 1u);
        ASSERT_EQ(row.key().cols(), static_cast<std::uint32_t>(kKeyDim));
        ASSERT_EQ(row.key().data(),
                  std::string(reinterpret_cast<const char*>(&keys[position * kKeyDim]),
                              kKeyDim * sizeof(float)));
        ASSERT_EQ(row.value().data(),
                  std::string(reinterpret_cast<const char*>(&values[position * kValueDim]),
                              kValueDim * sizeof(float)));
        ASSERT_EQ(row.has_id(), row.labels_size() == 1);
        if (row.has_id()) {
          ASSERT_EQ(row.id(), static_cast<std::uint64_t>(100'000 - position));
        }
        ++position;
      }
    }
    EXPECT_EQ(position, kRows);
    if (page_rows == 7) {
      EXPECT_GE(pages.size(), 358u);
    }
  }
}

TEST_F(RowsTest, AnExportCarriesTheFieldsOfItsMaskOnly) {
  Create("s", 1, 1);
  v1::AppendRequest append = RowsWithIds(10, 2, 1);
  append.add_row_labels()->add_labels("a");
  append.add_row_labels()->add_labels("b");
  ASSERT_THAT(Append(append), IsGrpcOk());
  const std::vector<std::string> fields = {"position", "id", "labels", "key", "value"};
  for (int mask = 1; mask < 32; ++mask) {
    SCOPED_TRACE(mask);
    v1::ReadRowsRequest request;
    request.set_store("s");
    request.mutable_filter()->set_begin(1);
    for (int i = 0; i < 5; ++i) {
      if (mask >> i & 1) request.mutable_read_mask()->add_paths(fields[i]);
    }
    std::vector<v1::ReadRowsResponse> pages;
    ASSERT_THAT(ReadRows(request, &pages), IsGrpcOk());
    ASSERT_EQ(pages.at(0).rows_size(), 1);
    const v1::Row& row = pages[0].rows(0);
    EXPECT_EQ(row.position(), mask & 1 ? 1u : 0u);
    EXPECT_EQ(row.has_id(), (mask & 2) != 0);
    EXPECT_EQ(row.labels_size(), mask & 4 ? 1 : 0);
    EXPECT_EQ(row.has_key(), (mask & 8) != 0);
    EXPECT_EQ(row.has_value(), (mask & 16) != 0);
  }
  for (const char* path : {"weight", "key.data", "Key", ""}) {
    v1::ReadRowsRequest request;
    request.set_store("s");
    request.mutable_read_mask()->add_paths("key");
    request.mutable_read_mask()->add_paths(path);
    std::vector<v1::ReadRowsResponse> pages;
    EXPECT_THAT(ReadRows(request, &pages),
                IsGrpcError(grpc::StatusCode::INVALID_ARGUMENT, "read_mask"))
        << path;
    EXPECT_THAT(pages, IsEmpty());
  }
}

TEST_F(RowsTest, AnExportIsOneSnapshotWhateverIsWrittenMeanwhile) {
  constexpr int kRows = 20'000;
  Create("s", 64, 64);
  const std::vector<float> numbers = NormalFloats(kRows * 64, 1);
  v1::AppendRequest append;
  append.set_store("s");
  *append.mutable_keys() = Message(numbers, 64);
  *append.mutable_values() = Message(numbers, 64);
  for (int i = 0; i < kRows; ++i) append.add_ids(i);
  ASSERT_THAT(Append(append), IsGrpcOk());
  v1::ReadRowsRequest request;
  request.set_store("s");
  request.set_page_rows(10);
  request.mutable_read_mask()->add_paths("position");
  request.mutable_read_mask()->add_paths("key");
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
  const auto reader = stub_->ReadRows(&context, request);
  v1::ReadRowsResponse page;
  std::uint64_t position = 0;
  const auto check_page = [&] {
    ASSERT_EQ(page.revision(), 2u);
    for (const v1::Row& row : page.rows()) {
      ASSERT_EQ(row.position(), position);
      ASSERT_EQ(std::memcmp(row.key().data().data(), &numbers[position * 64], 64 * 4), 0);
      ++position;
    }
  };
  ASSERT_TRUE(reader->Read(&page));
  check_page();
  // 5 MB are still to come, more than the connection buffers.
  v1::RowFilter filter;
  filter.set_begin(100);
  v1::DeleteRowsResponse deleted;
  ASSERT_THAT(DeleteRows("s", filter, &deleted), IsGrpcOk());
  EXPECT_EQ(deleted.deleted_count(), kRows - 100u);
  append.set_on_conflict(v1::ON_CONFLICT_REPLACE);
  ASSERT_THAT(Append(append), IsGrpcOk());
  while (reader->Read(&page)) check_page();
  ASSERT_THAT(reader->Finish(), IsGrpcOk());
  EXPECT_EQ(position, static_cast<std::uint64_t>(kRows));
}

TEST_F(RowsTest, LookupsBesideReplaceAndDeleteSeeOneStateOrTheOther) {
  constexpr int kRows = 1500, kRounds = 150;  // More than a block, so that both change two.
  Create("s", 1, 1);
  std::map<std::uint64_t, float> value_of;          // Every revision's, NaN where it has no rows.
  std::map<std::uint64_t, std::uint64_t> first_of;  // And its first position.
  std::atomic<bool> done = false;
  std::atomic<int> answered = 0;
  struct Seen {
    std::uint64_t revision, counted, first, last;
    float value;
  };
  std::vector<std::vector<Seen>> seen(2);
  std::vector<std::thread> readers;
  value_of[1] = NAN;
  v1::AppendResponse appended;
  ASSERT_THAT(Append(RowsWithIds(0, kRows, 1), &appended), IsGrpcOk());
  value_of[appended.revision()] = 1;
  first_of[appended.revision()] = 0;
  for (int r = 0; r < 2; ++r) {
    readers.emplace_back([&, r] {
      v1::LookupRequest request = OneQuery();
      request.mutable_options()->set_score(v1::SCORE_COSINE);  // All rows weigh the same, nearly.
      while (!done) {
        v1::LookupResponse answer;
        const grpc::Status status = Lookup(request, &answer);
        ++answered;
        answered.notify_all();
        EXPECT_THAT(status, IsGrpcOk());
        if (!status.ok()) continue;
        const auto& positions = answer.weights(0).positions();
        const auto [first, last] = std::minmax_element(positions.begin(), positions.end());
        seen[r].push_back({answer.revision(), answer.stats(0).counted_rows(),
                           positions.empty() ? 0 : *first, positions.empty() ? 0 : *last,
                           Floats(answer.values()).at(0)});
      }
    });
  }
  for (int round = 2; round < kRounds; ++round) {
    const float value = static_cast<float>(round);
    const int answered_before = answered;
    if (round % 3 == 0) {
      v1::RowFilter filter;
      filter.set_begin(0);
      v1::DeleteRowsResponse deleted;
      EXPECT_THAT(DeleteRows("s", filter, &deleted), IsGrpcOk());
      EXPECT_EQ(deleted.deleted_count(), static_cast<std::uint64_t>(kRows));
      value_of[deleted.revision()] = NAN;
    }
    EXPECT_THAT(Append(RowsWithIds(0, kRows, value, v1::ON_CONFLICT_REPLACE), &appended),
                IsGrpcOk());
    value_of[appended.revision()] = value;
    first_of[appended.revision()] = appended.first_position();
    answered.wait(answered_before);  // Some lookup ends in every round.
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
  std::set<std::uint64_t> revisions;
  for (const auto& list : seen) {
    for (const Seen& answer : list) {
      revisions.insert(answer.revision);
      SCOPED_TRACE("revision " + std::to_string(answer.revision));
      ASSERT_TRUE(value_of.contains(answer.revision));
      const float value = value_of.at(answer.revision);
      if (std::isnan(value)) {
        ASSERT_EQ(answer.counted, 0u);
        ASSERT_EQ(answer.value, 0);
      } else {
        ASSERT_EQ(answer.counted, static_cast<std::uint64_t>(kRows));
        ASSERT_NEAR(answer.value, value, 1e-4 * value);
        ASSERT_EQ(answer.first, first_of.at(answer.revision));
        ASSERT_EQ(answer.last, first_of.at(answer.revision) + kRows - 1);
      }
    }
  }
  EXPECT_GT(revisions.size(), 20u);
}

TEST_F(RowsTest, AWatchSendsTheMemoryNowThenAfterChangesAndEndsWithItsStore) {
  v1::Store store;
  store.set_name("s");
  store.set_key_dim(1);
  store.set_value_dim(1);
  v1::MemorySpec* spec = store.add_memories();
  spec->set_name("total");
  spec->set_kind(v1::MEMORY_KIND_DECAYED_SUM);
  spec->set_decay(0.5);
  ASSERT_THAT(CreateStore(store), IsGrpcOk());
  ASSERT_THAT(Append(RowsWithIds(0, 1, 8)), IsGrpcOk());
  for (const std::string name : {"", "total"}) {
    SCOPED_TRACE(name);
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
    v1::WatchMemoryRequest request;
    request.set_store("s");
    request.set_name(name);
    const auto reader = stub_->WatchMemory(&context, request);
    v1::Memory memory;
    ASSERT_TRUE(reader->Read(&memory));
    std::uint64_t row_count = GetStore("s").row_count();
    EXPECT_EQ(memory.name(), name.empty() ? "average" : name);
    EXPECT_EQ(memory.end(), row_count);
    for (int i = 0; i < 5; ++i) {
      v1::AppendResponse appended;
      ASSERT_THAT(Append(RowsWithIds(row_count, 1, 8), &appended), IsGrpcOk());
      ++row_count;
      ASSERT_TRUE(reader->Read(&memory));
      EXPECT_EQ(memory.end(), row_count);
      EXPECT_EQ(memory.revision(), appended.revision());
      v1::Memory expected;
      ASSERT_THAT(GetMemory("s", name, {}, {}, &expected), IsGrpcOk());
      EXPECT_EQ(memory.value().data(), expected.value().data());
      EXPECT_EQ(memory.weight(), expected.weight());
    }
    if (name.empty()) {
      context.TryCancel();
      EXPECT_THAT(reader->Finish(), IsGrpcError(grpc::StatusCode::CANCELLED, ""));
      continue;
    }
    v1::DeleteStoreRequest drop;
    drop.set_name("s");
    v1::DeleteStoreResponse dropped;
    ASSERT_THAT(Call(&v1::SoftLookup::Stub::DeleteStore, drop, &dropped), IsGrpcOk());
    EXPECT_FALSE(reader->Read(&memory));
    const grpc::Status status = reader->Finish();
    EXPECT_THAT(status, IsGrpcError(grpc::StatusCode::NOT_FOUND, "\"s\""));
    EXPECT_EQ(ReasonIn(status), "STORE_NOT_FOUND");
  }
}

TEST_F(RowsTest, AWatchSendsAtMostOneMemoryAnInterval) {
  Create("s", 1, 1);
  constexpr int kAppends = 50, kIntervalMs = 200;
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
  v1::WatchMemoryRequest request;
  request.set_store("s");
  request.set_min_interval_ms(kIntervalMs);
  const absl::Time start = absl::Now();
  const auto reader = stub_->WatchMemory(&context, request);
  v1::Memory memory;
  ASSERT_TRUE(reader->Read(&memory));
  EXPECT_EQ(memory.end(), 0u);
  EXPECT_EQ(memory.weight(), 0);
  std::thread writer([&] {
    for (int i = 0; i < kAppends; ++i) ASSERT_THAT(Append(RowsWithIds(i, 1, 1)), IsGrpcOk());
  });
  int messages = 1;
  std::uint64_t before = 0;
  while (before < kAppends && reader->Read(&memory)) {
    EXPECT_GT(memory.end(), before);
    before = memory.end();
    ++messages;
  }
  writer.join();
  EXPECT_EQ(before, static_cast<std::uint64_t>(kAppends));  // The newest comes in any case.
  // The n-th message is not sent before n - 1 intervals have passed.
  EXPECT_GE(absl::Now() - start, (messages - 1) * absl::Milliseconds(kIntervalMs));
  context.TryCancel();
  reader->Finish();
}

TEST_F(RowsTest, AWatchInsideItsIntervalEndsWhenItsStoreIsDeletedEvenIfItIsCreatedAnew) {
  constexpr int kIntervalMs = 2000;
  Create("s", 1, 1);
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(20)));
  v1::WatchMemoryRequest request;
  request.set_store("s");
  request.set_min_interval_ms(kIntervalMs);
  const auto reader = stub_->WatchMemory(&context, request);
  v1::Memory memory;
  ASSERT_TRUE(reader->Read(&memory));
  ASSERT_THAT(Append(RowsWithIds(0, 1, 1)), IsGrpcOk());
  v1::DeleteStoreRequest drop;
  drop.set_name("s");
  v1::DeleteStoreResponse dropped;
  ASSERT_THAT(Call(&v1::SoftLookup::Stub::DeleteStore, drop, &dropped), IsGrpcOk());
  Create("s", 1, 1);
  ASSERT_THAT(Append(RowsWithIds(0, 7, 1)), IsGrpcOk());
  while (reader->Read(&memory)) {
    EXPECT_LT(memory.end(), 7u) << "the memory of another store";
    if (memory.end() == 7) context.TryCancel();
  }
  EXPECT_THAT(reader->Finish(), IsGrpcError(grpc::StatusCode::NOT_FOUND, "\"s\""));
}

TEST_F(RowsTest, AWatchOfWhatIsNotThereEndsAtOnce) {
  Create("s", 1, 1);
  for (const auto& [store, name] : std::map<std::string, std::string>{{"s", "m"}, {"t", ""}}) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
    v1::WatchMemoryRequest request;
    request.set_store(store);
    request.set_name(name);
    const auto reader = stub_->WatchMemory(&context, request);
    v1::Memory memory;
    EXPECT_FALSE(reader->Read(&memory));
    const grpc::Status status = reader->Finish();
    EXPECT_THAT(status, IsGrpcError(grpc::StatusCode::NOT_FOUND, store == "s" ? "\"m\"" : "\"t\""));
    EXPECT_EQ(ReasonIn(status), store == "s" ? "MEMORY_NOT_FOUND" : "STORE_NOT_FOUND");
  }
}

// Random numbers for one case.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : generator_(seed) {}
  std::int64_t Int(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(generator_);
  }
  bool Coin() { return Int(0, 1) == 1; }
  std::vector<float> Normal(std::int64_t count, double deviation = 1) {
    return NormalFloats(count, generator_(), deviation);
  }

 private:
  std::mt19937_64 generator_;
};

struct Maps {
  std::vector<float> query, key, value;
  v1::Projection message;
};

Maps RandomMaps(Draw& draw, std::int64_t key_dim, std::int64_t value_dim, std::int64_t input_dim) {
  const double deviation = 1 / std::sqrt(static_cast<double>(input_dim));
  Maps maps{.query = draw.Normal(key_dim * input_dim, deviation),
            .key = draw.Normal(key_dim * input_dim, deviation),
            .value = draw.Normal(value_dim * input_dim, deviation)};
  *maps.message.mutable_query() = Message(maps.query, input_dim);
  *maps.message.mutable_key() = Message(maps.key, input_dim);
  *maps.message.mutable_value() = Message(maps.value, input_dim);
  return maps;
}

TEST_F(RowsTest, AttendMatchesTheReference) {
  const std::uint64_t first_seed = FirstSeed();
  for (int i = 0; i < 150 && !HasFailure(); ++i) {
    SCOPED_TRACE("SOFTLOOKUP_TEST_SEED=" + std::to_string(first_seed + i));
    Draw draw(first_seed + i);
    const std::int64_t num_heads = draw.Coin() ? 1 : draw.Int(2, 4);
    std::int64_t key_dim = num_heads * draw.Int(1, 12), value_dim = num_heads * draw.Int(1, 6);
    const std::int64_t row_count = draw.Int(1, 50), input_dim = draw.Int(1, 16);
    const bool self = draw.Coin(), projects = draw.Coin();
    v1::AttendRequest request;
    std::vector<float> queries, keys, values;
    if (self && !projects) value_dim = key_dim;
    if (self || projects) {
      const std::int64_t dim = projects ? input_dim : key_dim;
      const std::vector<float> inputs = draw.Normal(row_count * dim);
      *request.mutable_inputs() = Message(inputs, dim);
      queries = keys = values = inputs;
      if (projects) {
        const Maps maps = RandomMaps(draw, key_dim, value_dim, input_dim);
        *request.mutable_projection() = maps.message;
        queries = Projected(inputs, maps.query, input_dim);
        keys = Projected(inputs, maps.key, input_dim);
        values = Projected(inputs, maps.value, input_dim);
      }
    } else {
      keys = draw.Normal(row_count * key_dim);
      values = draw.Normal(row_count * value_dim);
      *request.mutable_keys() = Message(keys, key_dim);
      *request.mutable_values() = Message(values, value_dim);
    }
    request.set_self(self);
    if (!self) {
      queries = draw.Normal(draw.Int(1, 6) * key_dim);
      *request.mutable_queries() = Message(queries, key_dim);
    }
    request.set_num_heads(num_heads == 1 && draw.Coin() ? 0 : num_heads);
    const bool defaults = draw.Int(0, 4) == 0;
    ResolvedOptions options;
    if (!defaults) {
      options = {.score = static_cast<Score>(draw.Int(1, 5)),
                 .temperature = 0.5 + 0.5 * static_cast<double>(draw.Int(0, 4)),
                 .mode = static_cast<Mode>(draw.Int(1, 3)),
                 .top_k = draw.Coin() ? 0 : static_cast<std::uint64_t>(draw.Int(1, 10)),
                 .causal = draw.Coin(),
                 .causal_offset = static_cast<std::uint64_t>(draw.Int(0, 3))};
      *request.mutable_options() = ToMessage({.score = options.score,
                                              .temperature = options.temperature,
                                              .mode = options.mode,
                                              .top_k = static_cast<std::uint32_t>(options.top_k),
                                              .causal = options.causal,
                                              .causal_offset = options.causal_offset});
      if (draw.Coin()) {
        options.ln_decay = std::log(0.9);
        request.mutable_options()->set_recency_decay(0.9);
      }
    }
    request.mutable_options()->set_weights(v1::WEIGHTS_MODE_ALL);
    const ReferenceAnswer expected =
        ReferenceAttend({.options = options,
                         .queries = CoreView(queries, key_dim),
                         .keys = CoreView(keys, key_dim),
                         .values = CoreView(values, value_dim),
                         .num_heads = num_heads,
                         .age_end = static_cast<std::uint64_t>(row_count)});
    v1::AttendResponse answer;
    ASSERT_THAT(Call(&v1::SoftLookup::Stub::Attend, request, &answer), IsGrpcOk());
    EXPECT_EQ(answer.values().rows() * static_cast<std::size_t>(value_dim), expected.values.size());
    EXPECT_EQ(answer.values().cols(), static_cast<std::uint32_t>(value_dim));
    double scale = 0, largest = 1;
    for (const float value : values) scale = std::max(scale, std::abs(static_cast<double>(value)));
    for (const auto& weights : expected.weights) {
      double sum = 0;
      for (const double weight : weights) sum += std::abs(weight);
      largest = std::max(largest, sum);
    }
    const std::vector<float> actual = Floats(answer.values());
    ASSERT_EQ(actual.size(), expected.values.size());
    for (std::size_t c = 0; c < actual.size(); ++c) {
      ASSERT_NEAR(actual[c], expected.values[c], 1e-5 * largest * scale);
    }
    ASSERT_EQ(answer.stats_size(), static_cast<int>(expected.stats.size()));
    ASSERT_EQ(answer.weights_size(), answer.stats_size());
    for (int lane = 0; lane < answer.stats_size(); ++lane) {
      const v1::QueryStats& stats = answer.stats(lane);
      EXPECT_EQ(stats.counted_rows(), expected.stats[lane].counted_rows);
      ExpectClose(stats.log_sum_exp(), expected.stats[lane].log_sum_exp, "log_sum_exp");
      const double max_logit = expected.stats[lane].max_logit;
      EXPECT_NEAR(stats.max_logit(), max_logit, 1e-5 * std::max(1.0, std::abs(max_logit)));
      ExpectClose(stats.entropy(), expected.stats[lane].entropy, "entropy");
      const std::vector<double> weights = Dense(answer.weights(lane), row_count);
      for (std::int64_t j = 0; j < row_count; ++j) {
        EXPECT_NEAR(weights[j], expected.weights[lane][j], 1e-5 * largest);
      }
      EXPECT_EQ(answer.weights(lane).ids_size(), 0);
    }
  }
}

TEST_F(RowsTest, AttendKeepsNothingAndAnswersInNumbersWhenAskedInNumbers) {
  v1::AttendRequest request;
  request.set_self(true);
  request.mutable_inputs()->set_rows(2);
  request.mutable_inputs()->set_cols(1);
  request.mutable_inputs()->add_values(1);
  request.mutable_inputs()->add_values(-1);
  v1::AttendResponse answer;
  ASSERT_THAT(Call(&v1::SoftLookup::Stub::Attend, request, &answer), IsGrpcOk());
  ASSERT_EQ(answer.values().values_size(), 2);
  EXPECT_NEAR(answer.values().values(0), std::tanh(1.0), 1e-6);
  EXPECT_NEAR(answer.values().values(1), -std::tanh(1.0), 1e-6);
  EXPECT_EQ(answer.weights_size(), 0);
  v1::ListStoresResponse stores;
  ASSERT_THAT(Call(&v1::SoftLookup::Stub::ListStores, v1::ListStoresRequest(), &stores),
              IsGrpcOk());
  EXPECT_EQ(stores.stores_size(), 0);
}

TEST_F(RowsTest, InputsOfAStoreAreWhatItsProjectionMakesOfThem) {
  const std::uint64_t first_seed = FirstSeed();
  for (int i = 0; i < 20 && !HasFailure(); ++i) {
    SCOPED_TRACE("SOFTLOOKUP_TEST_SEED=" + std::to_string(first_seed + i));
    Draw draw(first_seed + i);
    const std::int64_t num_heads = draw.Int(1, 3), key_dim = num_heads * draw.Int(1, 10);
    const std::int64_t value_dim = num_heads * draw.Int(1, 6), input_dim = draw.Int(1, 30);
    const std::int64_t row_count = draw.Int(1, 60);
    const Maps maps = RandomMaps(draw, key_dim, value_dim, input_dim);
    v1::Store store;
    store.set_name("inputs-" + std::to_string(i));
    store.set_key_dim(key_dim);
    store.set_value_dim(value_dim);
    store.set_num_heads(num_heads);
    v1::Store plain = store;
    plain.set_name("plain-" + std::to_string(i));
    *store.mutable_projection() = maps.message;
    ASSERT_THAT(CreateStore(store), IsGrpcOk());
    ASSERT_THAT(CreateStore(plain), IsGrpcOk());
    const v1::Projection kept = GetStore(store.name()).projection();
    EXPECT_EQ(Floats(kept.query()), maps.query);
    EXPECT_EQ(Floats(kept.key()), maps.key);
    EXPECT_EQ(Floats(kept.value()), maps.value);
    EXPECT_EQ(kept.value().rows(), static_cast<std::uint32_t>(value_dim));
    EXPECT_EQ(kept.value().cols(), static_cast<std::uint32_t>(input_dim));
    EXPECT_FALSE(GetStore(plain.name()).has_projection());

    const std::vector<float> inputs = draw.Normal(row_count * input_dim);
    const std::vector<float> asked = draw.Normal(3 * input_dim);
    v1::AppendRequest append;
    append.set_store(store.name());
    *append.mutable_inputs() = Message(inputs, input_dim);
    ASSERT_THAT(Append(append), IsGrpcOk());
    v1::AppendRequest append_plain;
    append_plain.set_store(plain.name());
    const std::vector<float> keys = Projected(inputs, maps.key, input_dim);
    *append_plain.mutable_keys() = Message(keys, key_dim);
    *append_plain.mutable_values() = Message(Projected(inputs, maps.value, input_dim), value_dim);
    ASSERT_THAT(Append(append_plain), IsGrpcOk());
    const std::vector<v1::Row> rows = RowsOf(store.name()), plain_rows = RowsOf(plain.name());
    ASSERT_EQ(rows.size(), plain_rows.size());
    for (std::size_t j = 0; j < rows.size(); ++j) {
      EXPECT_THAT(Floats(rows[j].key()),
                  ::testing::Pointwise(::testing::FloatNear(1e-6), Floats(plain_rows[j].key())));
      EXPECT_THAT(Floats(rows[j].value()),
                  ::testing::Pointwise(::testing::FloatNear(1e-6), Floats(plain_rows[j].value())));
    }

    v1::LookupRequest lookup;
    lookup.set_store(store.name());
    lookup.mutable_options()->set_weights(v1::WEIGHTS_MODE_ALL);
    v1::LookupRequest lookup_plain = lookup, lookup_queries = lookup;
    *lookup.mutable_inputs() = Message(asked, input_dim);
    const v1::Matrix queries = Message(Projected(asked, maps.query, input_dim), key_dim);
    lookup_plain.set_store(plain.name());
    *lookup_plain.mutable_queries() = queries;
    *lookup_queries.mutable_queries() = queries;  // Queries may still come as they are.
    v1::LookupResponse by_inputs, by_queries, expected;
    ASSERT_THAT(Lookup(lookup, &by_inputs), IsGrpcOk());
    ASSERT_THAT(Lookup(lookup_queries, &by_queries), IsGrpcOk());
    ASSERT_THAT(Lookup(lookup_plain, &expected), IsGrpcOk());
    for (const v1::LookupResponse& answer : {by_inputs, by_queries}) {
      EXPECT_THAT(Floats(answer.values()),
                  ::testing::Pointwise(::testing::FloatNear(1e-5), Floats(expected.values())));
      ASSERT_EQ(answer.stats_size(), expected.stats_size());
      for (int lane = 0; lane < expected.stats_size(); ++lane) {
        ExpectClose(answer.stats(lane).log_sum_exp(), expected.stats(lane).log_sum_exp(), "lse");
      }
    }
  }
}

TEST_F(RowsTest, AProjectionComesAndGoesWithAnUpdate) {
  Create("s", 2, 1);
  Draw draw(1);
  const Maps maps = RandomMaps(draw, 2, 1, 3);
  v1::AppendRequest append;
  append.set_store("s");
  *append.mutable_inputs() = Message({1, 2, 3}, 3);
  v1::LookupRequest lookup;
  lookup.set_store("s");
  *lookup.mutable_inputs() = Message({1, 2, 3}, 3);
  v1::LookupResponse answer;
  v1::UpdateStoreRequest update;
  update.mutable_store()->set_name("s");
  update.mutable_update_mask()->add_paths("projection");
  v1::Store updated;
  for (int round = 0; round < 2; ++round) {
    const grpc::Status status = Append(append);
    EXPECT_THAT(status, IsGrpcError(grpc::StatusCode::FAILED_PRECONDITION, "inputs"));
    EXPECT_EQ(ReasonIn(status), "NO_PROJECTION");
    EXPECT_THAT(Lookup(lookup, &answer),
                IsGrpcError(grpc::StatusCode::FAILED_PRECONDITION, "inputs"));
    *update.mutable_store()->mutable_projection() = maps.message;
    ASSERT_THAT(Call(&v1::SoftLookup::Stub::UpdateStore, update, &updated), IsGrpcOk());
    EXPECT_EQ(Floats(updated.projection().key()), maps.key);
    EXPECT_THAT(Append(append), IsGrpcOk());
    EXPECT_THAT(Lookup(lookup, &answer), IsGrpcOk());
    EXPECT_EQ(answer.row_count(), round + 1u);
    update.mutable_store()->clear_projection();
    ASSERT_THAT(Call(&v1::SoftLookup::Stub::UpdateStore, update, &updated), IsGrpcOk());
    EXPECT_FALSE(updated.has_projection());
  }
}

// A pair to attend to, in float64, that stands for `multiplicity` rows.
struct Pair {
  std::vector<double> key, value;
  double multiplicity = 1;
};

struct PairAnswer {
  std::vector<double> values;
  std::vector<double> log_sum_exp;
};

// The definition in API.md, of one query at a time.
PairAnswer AttendToPairs(const std::vector<float>& queries, const std::vector<Pair>& pairs,
                         v1::Score score, double temperature, v1::Mode mode, std::int64_t num_heads,
                         std::int64_t key_dim, std::int64_t value_dim) {
  PairAnswer answer;
  const std::int64_t d = key_dim / num_heads, dv = value_dim / num_heads;
  for (std::size_t t = 0; t < queries.size(); t += key_dim) {
    for (std::int64_t head = 0; head < num_heads; ++head) {
      std::vector<double> logits;
      double best = -kInfinity;
      for (const Pair& pair : pairs) {
        double dot = 0, qq = 0, kk = 0, distance = 0;
        for (std::int64_t i = 0; i < d; ++i) {
          const double q = queries[t + head * d + i], k = pair.key[head * d + i];
          dot += q * k;
          qq += q * q;
          kk += k * k;
          distance += (q - k) * (q - k);
        }
        const double s = score == v1::SCORE_DOT      ? dot
                         : score == v1::SCORE_COSINE ? (qq * kk > 0 ? dot / std::sqrt(qq * kk) : 0)
                         : score == v1::SCORE_EUCLIDEAN         ? -std::sqrt(distance)
                         : score == v1::SCORE_SQUARED_EUCLIDEAN ? -distance
                                                                : dot / std::sqrt(d);
        logits.push_back(s / temperature);
        best = std::max(best, logits.back());
      }
      double sum = 0;
      std::vector<double> values(dv);
      for (std::size_t j = 0; j < pairs.size(); ++j) {
        const double weight = pairs[j].multiplicity *
                              (mode == v1::MODE_LINEAR ? logits[j] : std::exp(logits[j] - best));
        sum += weight;
        for (std::int64_t i = 0; i < dv; ++i) values[i] += weight * pairs[j].value[head * dv + i];
      }
      const bool linear = mode == v1::MODE_LINEAR;
      for (const double value : values) answer.values.push_back(linear ? value : value / sum);
      answer.log_sum_exp.push_back(linear ? -kInfinity : best + std::log(sum));
    }
  }
  return answer;
}

TEST_F(RowsTest, AMemoryOrRowsAndAMemoryAnswerAsDefined) {
  const std::uint64_t first_seed = FirstSeed();
  for (int i = 0; i < 60 && !HasFailure(); ++i) {
    SCOPED_TRACE("SOFTLOOKUP_TEST_SEED=" + std::to_string(first_seed + i));
    Draw draw(first_seed + i);
    const std::int64_t num_heads = draw.Int(1, 3), key_dim = num_heads * draw.Int(1, 8);
    const std::int64_t value_dim = num_heads * draw.Int(1, 5);
    const std::int64_t row_count = i % 10 == 0 ? draw.Int(1000, 2500) : draw.Int(1, 60);
    v1::Store store;
    store.set_name("s" + std::to_string(i));
    store.set_key_dim(key_dim);
    store.set_value_dim(value_dim);
    store.set_num_heads(num_heads);
    const std::vector<float> gate = draw.Normal(key_dim + 1);
    for (int kind = v1::MEMORY_KIND_AVERAGE; kind <= v1::MEMORY_KIND_GATED_AVERAGE; ++kind) {
      v1::MemorySpec* spec = store.add_memories();
      spec->set_name("kind" + std::to_string(kind));
      spec->set_kind(static_cast<v1::MemoryKind>(kind));
      if (kind == v1::MEMORY_KIND_DECAYED_SUM || kind == v1::MEMORY_KIND_DECAYED_AVERAGE) {
        spec->set_decay(0.75);
      }
      if (kind >= v1::MEMORY_KIND_GATED) *spec->mutable_gate() = Message(gate, key_dim + 1);
    }
    ASSERT_THAT(CreateStore(store), IsGrpcOk());
    const std::vector<float> keys = draw.Normal(row_count * key_dim, 0.7);
    const std::vector<float> values = draw.Normal(row_count * value_dim);
    const std::vector<float> queries = draw.Normal(3 * key_dim, 0.7);
    v1::AppendRequest append;
    append.set_store(store.name());
    *append.mutable_keys() = Message(keys, key_dim);
    *append.mutable_values() = Message(values, value_dim);
    ASSERT_THAT(Append(append), IsGrpcOk());

    const auto pair_of = [&](std::int64_t row) {
      return Pair{
          .key = {keys.begin() + row * key_dim, keys.begin() + (row + 1) * key_dim},
          .value = {values.begin() + row * value_dim, values.begin() + (row + 1) * value_dim}};
    };
    // A memory as of `end`, by its recurrence.
    const auto memory_of = [&](int kind, std::int64_t end) {
      Pair memory{.key = std::vector<double>(key_dim), .value = std::vector<double>(value_dim)};
      double weight = 0;
      for (std::int64_t row = 0; row < end; ++row) {
        const Pair x = pair_of(row);
        double keep = 1;
        if (kind == v1::MEMORY_KIND_DECAYED_SUM || kind == v1::MEMORY_KIND_DECAYED_AVERAGE) {
          keep = 0.75;
        } else if (kind >= v1::MEMORY_KIND_GATED) {
          double sum = gate[0];
          for (std::int64_t c = 0; c < key_dim; ++c) sum += gate[c + 1] * x.key[c];
          keep = 1 / (1 + std::exp(-sum));
        }
        for (std::int64_t c = 0; c < key_dim; ++c) memory.key[c] = keep * memory.key[c] + x.key[c];
        for (std::int64_t c = 0; c < value_dim; ++c) {
          memory.value[c] = keep * memory.value[c] + x.value[c];
        }
        weight = keep * weight + 1;
      }
      const bool sums = kind == v1::MEMORY_KIND_DECAYED_SUM || kind == v1::MEMORY_KIND_GATED;
      for (double& c : memory.key) c /= sums ? 1 : weight;
      for (double& c : memory.value) c /= sums ? 1 : weight;
      return memory;
    };

    v1::LookupRequest lookup;
    lookup.set_store(store.name());
    *lookup.mutable_queries() = Message(queries, key_dim);
    const auto score = static_cast<v1::Score>(draw.Int(1, 5));
    const v1::Mode mode = draw.Int(0, 3) == 0 ? v1::MODE_LINEAR : v1::MODE_SOFT;
    lookup.mutable_options()->set_score(score);
    lookup.mutable_options()->set_mode(mode);
    lookup.mutable_options()->set_temperature(0.7);
    const auto check = [&](const std::vector<Pair>& pairs) {
      v1::LookupResponse answer;
      ASSERT_THAT(Lookup(lookup, &answer), IsGrpcOk());
      const PairAnswer expected =
          AttendToPairs(queries, pairs, score, 0.7, mode, num_heads, key_dim, value_dim);
      double scale = 1;  // LINEAR weights are not normalised, and of both signs.
      for (const double value : expected.values) scale = std::max(scale, std::abs(value));
      if (mode == v1::MODE_LINEAR) scale *= std::sqrt(static_cast<double>(row_count));
      const std::vector<float> actual = Floats(answer.values());
      ASSERT_EQ(actual.size(), expected.values.size());
      for (std::size_t c = 0; c < actual.size(); ++c) {
        ASSERT_NEAR(actual[c], expected.values[c], 1e-5 * scale) << "component " << c;
      }
      ASSERT_EQ(answer.stats_size(), static_cast<int>(expected.log_sum_exp.size()));
      for (int lane = 0; lane < answer.stats_size(); ++lane) {
        if (pairs.size() == 1) {
          EXPECT_EQ(answer.stats(lane).counted_rows(), 1u);
        }
        const double lse = expected.log_sum_exp[lane];
        if (std::isinf(lse)) {
          EXPECT_EQ(answer.stats(lane).log_sum_exp(), lse);
        } else {
          EXPECT_NEAR(answer.stats(lane).log_sum_exp(), lse, 1e-5 * std::max(1.0, std::abs(lse)));
        }
      }
    };

    lookup.set_source(v1::SOURCE_MEMORY);
    for (int kind = 0; kind <= v1::MEMORY_KIND_GATED_AVERAGE; ++kind) {  // 0: the built-in one.
      SCOPED_TRACE("memory of kind " + std::to_string(kind));
      lookup.set_memory(kind > 0 ? "kind" + std::to_string(kind) : draw.Coin() ? "" : "average");
      std::int64_t end = row_count;
      lookup.clear_filter();
      if (draw.Coin()) {
        end = draw.Int(1, row_count);
        lookup.mutable_filter()->set_end(end);
      }
      check({memory_of(kind, end)});
    }

    SCOPED_TRACE("rows and memory");
    lookup.set_source(v1::SOURCE_ROWS_AND_MEMORY);
    lookup.clear_memory();
    for (int round = 0; round < 4; ++round) {
      const std::int64_t end = draw.Coin() ? row_count : draw.Int(1, row_count);
      const std::int64_t begin = draw.Int(0, end);
      lookup.clear_filter();
      if (end != row_count) lookup.mutable_filter()->set_end(end);
      if (draw.Coin()) {
        lookup.mutable_filter()->set_begin(begin);
      } else {
        lookup.mutable_filter()->set_last(end - begin);
      }
      std::vector<Pair> pairs;
      if (begin > 0) {
        pairs.push_back(memory_of(v1::MEMORY_KIND_AVERAGE, begin));
        pairs.back().multiplicity = static_cast<double>(begin);
      }
      for (std::int64_t row = begin; row < end; ++row) pairs.push_back(pair_of(row));
      check(pairs);
    }
  }
}

TEST_F(RowsTest, AMemoryOfNoRowsIsAnEmptyAnswer) {
  Create("s", 1, 1);
  v1::LookupRequest lookup = OneQuery();
  v1::LookupResponse answer;
  for (const auto source : {v1::SOURCE_MEMORY, v1::SOURCE_ROWS_AND_MEMORY}) {
    lookup.set_source(source);
    ASSERT_THAT(Lookup(lookup, &answer), IsGrpcOk());
    EXPECT_TRUE(answer.stats(0).empty());
    EXPECT_EQ(answer.stats(0).log_sum_exp(), -kInfinity);
    EXPECT_THAT(Floats(answer.values()), ElementsAre(0));
  }
}

TEST_F(RowsTest, BadStoresAreRefusedByField) {
  struct Bad {
    std::string what;
    std::string message;
    std::function<void(v1::Store&)> spoil;
  };
  const std::vector<Bad> all = {
      {"decay 0", "store.memories[0].decay", [](auto& s) { s.mutable_memories(0)->set_decay(0); }},
      {"decay 1", "store.memories[0].decay", [](auto& s) { s.mutable_memories(0)->set_decay(1); }},
      {"decay over 1", "store.memories[0].decay",
       [](auto& s) { s.mutable_memories(0)->set_decay(1.5); }},
      {"negative decay", "store.memories[0].decay",
       [](auto& s) { s.mutable_memories(0)->set_decay(-0.5); }},
      {"decay NaN", "store.memories[0].decay",
       [](auto& s) { s.mutable_memories(0)->set_decay(NAN); }},
      {"gate without its bias", "store.memories[1].gate",
       [](auto& s) {
         *s.mutable_memories(1)->mutable_gate() = Message({1, 2}, 2);
       }},
      {"gate too long", "store.memories[1].gate",
       [](auto& s) {
         *s.mutable_memories(1)->mutable_gate() = Message({1, 2, 3, 4}, 4);
       }},
      {"gate of two rows", "store.memories[1].gate",
       [](auto& s) {
         *s.mutable_memories(1)->mutable_gate() = Message({1, 2, 3, 4, 5, 6}, 3);
       }},
      {"gate as a column", "store.memories[1].gate",
       [](auto& s) {
         *s.mutable_memories(1)->mutable_gate() = Message({1, 2, 3}, 1);
       }},
      {"no gate", "store.memories[1].gate", [](auto& s) { s.mutable_memories(1)->clear_gate(); }},
      {"gate NaN", "store.memories[1].gate",
       [](auto& s) {
         *s.mutable_memories(1)->mutable_gate() = Message({1, NAN, 3}, 3);
       }},
      {"no kind", "store.memories[1].kind", [](auto& s) { s.mutable_memories(1)->clear_kind(); }},
      {"unknown kind", "store.memories[1].kind",
       [](auto& s) { s.mutable_memories(1)->set_kind(static_cast<v1::MemoryKind>(99)); }},
      {"no name", "store.memories[0].name", [](auto& s) { s.mutable_memories(0)->clear_name(); }},
      {"named average", "store.memories[0].name",
       [](auto& s) { s.mutable_memories(0)->set_name("average"); }},
      {"a name twice", "store.memories[1].name",
       [](auto& s) { s.mutable_memories(1)->set_name("m0"); }},
      {"65 memories", "store.memories",
       [](auto& s) {
         for (int i = 2; i < 65; ++i) {
           *s.add_memories() = s.memories(0);
           s.mutable_memories(i)->set_name("m" + std::to_string(i));
         }
       }},
      {"query map of other inputs", "store.projection",
       [](auto& s) {
         *s.mutable_projection()->mutable_query() = Message(std::vector<float>(8), 4);
       }},
      {"value map of other inputs", "store.projection.value",
       [](auto& s) {
         *s.mutable_projection()->mutable_value() = Message({1, 2}, 2);
       }},
      {"key map of another dimension", "store.projection.key",
       [](auto& s) { *s.mutable_projection()->mutable_key() = Message(std::vector<float>(9), 3); }},
      {"query map of another dimension", "store.projection.query",
       [](auto& s) {
         *s.mutable_projection()->mutable_query() = Message({1, 2, 3}, 3);
       }},
      {"value map of another dimension", "store.projection.value",
       [](auto& s) {
         *s.mutable_projection()->mutable_value() = Message(std::vector<float>(6), 3);
       }},
      {"a map missing", "store.projection.value",
       [](auto& s) { s.mutable_projection()->clear_value(); }},
      {"an infinite map", "store.projection.key",
       [](auto& s) {
         *s.mutable_projection()->mutable_key() = Message({1, 2, 3, 4, INFINITY, 6}, 3);
       }},
  };
  v1::Store good;
  good.set_name("s");
  good.set_key_dim(2);
  good.set_value_dim(1);
  good.add_memories()->set_name("m0");
  good.mutable_memories(0)->set_kind(v1::MEMORY_KIND_DECAYED_SUM);
  good.mutable_memories(0)->set_decay(0.5);
  good.add_memories()->set_name("m1");
  good.mutable_memories(1)->set_kind(v1::MEMORY_KIND_GATED);
  *good.mutable_memories(1)->mutable_gate() = Message({0, 1, 2}, 3);
  *good.mutable_projection()->mutable_query() = Message(std::vector<float>(6, 1.0f), 3);
  *good.mutable_projection()->mutable_key() = Message(std::vector<float>(6, 1.0f), 3);
  *good.mutable_projection()->mutable_value() = Message(std::vector<float>(3, 1.0f), 3);
  for (const Bad& bad : all) {
    SCOPED_TRACE(bad.what);
    v1::Store store = good;
    bad.spoil(store);
    const grpc::Status status = CreateStore(store);
    EXPECT_THAT(status, IsGrpcError(grpc::StatusCode::INVALID_ARGUMENT, bad.message));
    EXPECT_NE(ReasonIn(status), "");
  }
  EXPECT_THAT(CreateStore(good), IsGrpcOk());
  // Nor does a projection that does not fit come in by an update.
  for (const Bad& bad : all) {
    if (bad.message.find("projection") == std::string::npos) continue;
    SCOPED_TRACE(bad.what);
    v1::UpdateStoreRequest update;
    *update.mutable_store() = good;
    bad.spoil(*update.mutable_store());
    update.mutable_update_mask()->add_paths("projection");
    v1::Store updated;
    EXPECT_THAT(Call(&v1::SoftLookup::Stub::UpdateStore, update, &updated),
                IsGrpcError(grpc::StatusCode::INVALID_ARGUMENT, bad.message));
  }
  EXPECT_EQ(GetStore("s").revision(), 1u);
}

TEST_F(RowsTest, BadAppendsOfTaggedRowsAreRefusedByFieldAndLeaveNothing) {
  v1::Store store;
  store.set_name("s");
  store.set_key_dim(2);
  store.set_value_dim(1);
  *store.mutable_projection()->mutable_query() = Message(std::vector<float>(6, 1.0f), 3);
  *store.mutable_projection()->mutable_key() = Message(std::vector<float>(6, 1.0f), 3);
  *store.mutable_projection()->mutable_value() = Message(std::vector<float>(3, 1.0f), 3);
  ASSERT_THAT(CreateStore(store), IsGrpcOk());
  struct Bad {
    std::string what;
    std::string message;
    std::function<void(v1::AppendRequest&)> spoil;
    grpc::StatusCode code = grpc::StatusCode::INVALID_ARGUMENT;
  };
  const auto use_inputs = [](v1::AppendRequest& r, const std::vector<float>& inputs, int cols) {
    r.clear_keys();
    r.clear_values();
    *r.mutable_inputs() = Message(inputs, cols);
  };
  const std::vector<Bad> all = {
      {"an id twice", "ids: row 1", [](auto& r) { r.set_ids(1, r.ids(0)); }},
      {"an id missing", "ids: 1 ids", [](auto& r) { r.mutable_ids()->RemoveLast(); }},
      {"an id too many", "ids: 3 ids", [](auto& r) { r.add_ids(77); }},
      {"labels missing", "row_labels", [](auto& r) { r.mutable_row_labels()->RemoveLast(); }},
      {"17 labels", "row_labels: row 1",
       [](auto& r) {
         for (int i = 0; i < 17; ++i) r.mutable_row_labels(1)->add_labels(std::to_string(i));
       }},
      {"a label of 65 bytes", "row_labels: row 0",
       [](auto& r) { r.mutable_row_labels(0)->add_labels(std::string(65, 'x')); }},
      {"unknown on_conflict", "on_conflict",
       [](auto& r) { r.set_on_conflict(static_cast<v1::OnConflict>(9)); }},
      {"unknown acknowledge", "acknowledge",
       [](auto& r) { r.set_acknowledge(static_cast<v1::Acknowledge>(9)); }},
      {"unknown memory", "\"m\"", [](auto& r) { r.add_return_memories("m"); },
       grpc::StatusCode::NOT_FOUND},
      {"inputs beside keys", "inputs",
       [](auto& r) {
         *r.mutable_inputs() = Message({1, 2, 3, 4, 5, 6}, 3);
       }},
      {"inputs of another dimension", "inputs: 2 columns",
       [&](auto& r) {
         use_inputs(r, {1, 2, 3, 4}, 2);
       }},
      {"inputs NaN", "inputs: row 1, column 2 is NaN",
       [&](auto& r) {
         use_inputs(r, {1, 2, 3, 4, 5, NAN}, 3);
       }},
      {"inputs that overflow", "inputs: row 0",
       [&](auto& r) {
         use_inputs(r, {3e38f, 3e38f, 3e38f, 1, 1, 1}, 3);
       }},
      {"no inputs", "inputs: an append has at least one row",
       [&](auto& r) { use_inputs(r, {}, 3); }},
  };
  v1::AppendRequest good;
  good.set_store("s");
  *good.mutable_keys() = Message({1, 2, 3, 4}, 2);
  *good.mutable_values() = Message({5, 6}, 1);
  good.add_ids(1);
  good.add_ids(2);
  good.add_row_labels()->add_labels("a");
  good.add_row_labels();
  for (const Bad& bad : all) {
    SCOPED_TRACE(bad.what);
    v1::AppendRequest request = good;
    bad.spoil(request);
    const grpc::Status status = Append(request);
    EXPECT_THAT(status, IsGrpcError(bad.code, bad.message));
    EXPECT_NE(ReasonIn(status), "");
    EXPECT_EQ(GetStore("s").row_count(), 0u);
    EXPECT_EQ(GetStore("s").revision(), 1u);
  }
  // At the limits, and then with the ids all taken.
  for (int i = 0; i < 15; ++i) good.mutable_row_labels(0)->add_labels(std::string(60, 'a' + i));
  good.mutable_row_labels(1)->add_labels(std::string(64, 'x'));
  EXPECT_THAT(Append(good), IsGrpcOk());
  EXPECT_THAT(Append(good), IsGrpcError(grpc::StatusCode::ALREADY_EXISTS, "id 1"));
}

TEST_F(RowsTest, BadReadsAreRefusedByFieldInEveryMethodThatTakesThem) {
  Create("s", 1, 1);
  ASSERT_THAT(Append(RowsWithIds(0, 5, 1)), IsGrpcOk());
  constexpr auto kInvalid = grpc::StatusCode::INVALID_ARGUMENT;
  const auto with_filter = [&](const std::function<void(v1::RowFilter&)>& spoil,
                               const std::string& message) {
    v1::LookupRequest lookup = OneQuery();
    spoil(*lookup.mutable_filter());
    v1::LookupResponse answer;
    for (const auto source : {v1::SOURCE_ROWS, v1::SOURCE_MEMORY, v1::SOURCE_ROWS_AND_MEMORY}) {
      lookup.set_source(source);
      EXPECT_THAT(Lookup(lookup, &answer), IsGrpcError(kInvalid, message));
    }
    v1::ReadRowsRequest read;
    read.set_store("s");
    *read.mutable_filter() = lookup.filter();
    std::vector<v1::ReadRowsResponse> pages;
    EXPECT_THAT(ReadRows(read, &pages), IsGrpcError(kInvalid, message));
    EXPECT_THAT(pages, IsEmpty());
    v1::DeleteRowsResponse deleted;
    EXPECT_THAT(DeleteRows("s", lookup.filter(), &deleted), IsGrpcError(kInvalid, message));
  };
  with_filter([](auto& f) { f.set_end(6); }, "filter.end: 6");
  with_filter([](auto& f) { f.set_end(~0ull); }, "filter.end");
  with_filter([](auto& f) { f.set_begin(6); }, "filter.begin: 6");
  with_filter(
      [](auto& f) {
        f.set_begin(3);
        f.set_end(2);
      },
      "filter.begin: 3");
  with_filter(
      [](auto& f) {
        f.set_end(6);
        f.set_last(1);
        f.add_ids(1);
      },
      "filter.end: 6");

  v1::Memory memory;
  EXPECT_THAT(GetMemory("s", "", {}, 6, &memory), IsGrpcError(kInvalid, "end: 6"));
  EXPECT_THAT(GetMemory("s", "", 6, {}, &memory), IsGrpcError(kInvalid, "begin: 6"));
  EXPECT_THAT(GetMemory("s", "", 3, 2, &memory), IsGrpcError(kInvalid, "begin: 3"));
  const grpc::Status unknown = GetMemory("s", "m", {}, {}, &memory);
  EXPECT_THAT(unknown, IsGrpcError(grpc::StatusCode::NOT_FOUND, "\"m\""));
  EXPECT_EQ(ReasonIn(unknown), "MEMORY_NOT_FOUND");
  // An empty window is an answer.
  ASSERT_THAT(GetMemory("s", "", 3, 3, &memory), IsGrpcOk());
  EXPECT_EQ(memory.weight(), 0);
  EXPECT_THAT(Doubles(memory.value()), ElementsAre(0));

  v1::LookupRequest lookup = OneQuery();
  v1::LookupResponse answer;
  lookup.set_source(v1::SOURCE_MEMORY);
  lookup.set_memory("m");
  EXPECT_THAT(Lookup(lookup, &answer), IsGrpcError(grpc::StatusCode::NOT_FOUND, "\"m\""));
  lookup.set_source(static_cast<v1::Source>(9));
  EXPECT_THAT(Lookup(lookup, &answer), IsGrpcError(kInvalid, "source"));
  lookup = OneQuery();
  *lookup.mutable_inputs() = Message({1}, 1);
  EXPECT_THAT(Lookup(lookup, &answer), IsGrpcError(kInvalid, "inputs"));

  v1::RowFilter filter;
  filter.set_begin(0);
  v1::DeleteRowsResponse deleted;
  EXPECT_THAT(DeleteRows("t", filter, &deleted), IsGrpcError(grpc::StatusCode::NOT_FOUND, "\"t\""));
  v1::ReadRowsRequest read;
  read.set_store("t");
  std::vector<v1::ReadRowsResponse> pages;
  EXPECT_THAT(ReadRows(read, &pages), IsGrpcError(grpc::StatusCode::NOT_FOUND, "\"t\""));
  EXPECT_EQ(GetStore("s").revision(), 2u);
  EXPECT_EQ(GetStore("s").live_row_count(), 5u);
  EXPECT_THAT(Lookup(OneQuery(), &answer), IsGrpcOk());
}

TEST_F(RowsTest, BadAttendsAreRefusedByField) {
  struct Bad {
    std::string what;
    std::string message;
    std::function<void(v1::AttendRequest&)> spoil;
    grpc::StatusCode code = grpc::StatusCode::INVALID_ARGUMENT;
  };
  const auto use_inputs = [](v1::AttendRequest& r, bool projects) {
    r.clear_keys();
    r.clear_values();
    *r.mutable_inputs() = Message({1, 2, 3, 4, 5, 6}, 3);
    if (!projects) return;
    *r.mutable_projection()->mutable_query() = Message(std::vector<float>(6, 1.0f), 3);
    *r.mutable_projection()->mutable_key() = Message(std::vector<float>(6, 1.0f), 3);
    *r.mutable_projection()->mutable_value() = Message(std::vector<float>(6, 1.0f), 3);
  };
  const std::vector<Bad> all = {
      {"row counts differ", "values",
       [](auto& r) {
         *r.mutable_values() = Message({1, 2}, 2);
       }},
      {"query dimension", "queries: 3 columns",
       [](auto& r) {
         *r.mutable_queries() = Message({1, 2, 3}, 3);
       }},
      {"no rows", "keys",
       [](auto& r) {
         *r.mutable_keys() = Message({}, 2);
         *r.mutable_values() = Message({}, 2);
       }},
      {"heads that do not divide", "num_heads", [](auto& r) { r.set_num_heads(3); }},
      {"heads that do not divide the values", "value",
       [](auto& r) {
         r.set_num_heads(2);
         *r.mutable_values() = Message({1, 2}, 1);
       }},
      {"query NaN", "queries: row 0, column 1 is NaN",
       [](auto& r) {
         *r.mutable_queries() = Message({1, NAN}, 2);
       }},
      {"key infinite", "keys: row 1, column 0 is infinite",
       [](auto& r) {
         *r.mutable_keys() = Message({1, 2, INFINITY, 4}, 2);
       }},
      {"value NaN", "values: row 1, column 1 is NaN",
       [](auto& r) {
         *r.mutable_values() = Message({1, 2, 3, NAN}, 2);
       }},
      {"both encodings", "keys: data and values", [](auto& r) { r.mutable_keys()->add_values(1); }},
      {"no queries", "queries", [](auto& r) { r.clear_queries(); }},
      {"temperature 0", "options.temperature",
       [](auto& r) { r.mutable_options()->set_temperature(0); }},
      {"unknown score", "options.score",
       [](auto& r) { r.mutable_options()->set_score(static_cast<v1::Score>(9)); }},
      {"self without inputs", "inputs",
       [](auto& r) {
         r.clear_queries();
         r.set_self(true);
       }},
      {"self beside queries", "inputs",
       [&](auto& r) {
         use_inputs(r, true);
         r.set_self(true);
       }},
      {"inputs beside keys", "inputs",
       [](auto& r) {
         *r.mutable_inputs() = Message({1, 2, 3, 4}, 2);
       }},
      {"inputs without a projection", "inputs", [&](auto& r) { use_inputs(r, false); },
       grpc::StatusCode::FAILED_PRECONDITION},
      {"inputs NaN", "inputs: row 0, column 0 is NaN",
       [&](auto& r) {
         use_inputs(r, true);
         *r.mutable_inputs() = Message({NAN, 2, 3}, 3);
       }},
      {"inputs of another dimension", "inputs: 2 columns",
       [&](auto& r) {
         use_inputs(r, true);
         *r.mutable_inputs() = Message({1, 2}, 2);
       }},
      {"maps of different inputs", "projection.value",
       [&](auto& r) {
         use_inputs(r, true);
         *r.mutable_projection()->mutable_value() = Message(std::vector<float>(4, 1.0f), 2);
       }},
      {"query and key maps of different dimensions", "projection.query",
       [&](auto& r) {
         use_inputs(r, true);
         *r.mutable_projection()->mutable_query() = Message(std::vector<float>(9, 1.0f), 3);
       }},
      {"a map NaN", "projection.key",
       [&](auto& r) {
         use_inputs(r, true);
         *r.mutable_projection()->mutable_key() = Message({1, 2, 3, 4, 5, NAN}, 3);
       }},
      {"an empty projection", "projection",
       [&](auto& r) {
         use_inputs(r, true);
         r.mutable_projection()->Clear();
       }},
      {"too many queries", "over the limit of 4096",
       [](auto& r) { *r.mutable_queries() = Message(std::vector<float>(2 * 4097), 2); }},
  };
  v1::AttendRequest good;
  *good.mutable_queries() = Message({1, 2}, 2);
  *good.mutable_keys() = Message({1, 2, 3, 4}, 2);
  *good.mutable_values() = Message({5, 6, 7, 8}, 2);
  v1::AttendResponse answer;
  for (const Bad& bad : all) {
    SCOPED_TRACE(bad.what);
    v1::AttendRequest request = good;
    bad.spoil(request);
    const grpc::Status status = Call(&v1::SoftLookup::Stub::Attend, request, &answer);
    EXPECT_THAT(status, IsGrpcError(bad.code, bad.message));
    EXPECT_NE(ReasonIn(status), "");
    ASSERT_THAT(Call(&v1::SoftLookup::Stub::Attend, good, &answer), IsGrpcOk());
  }
}

}  // namespace
}  // namespace softlookup::testing
