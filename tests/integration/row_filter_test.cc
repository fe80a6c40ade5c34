// Filters, in every method that takes one.
#include <algorithm>
#include <functional>

#include "tests/integration/integration_test.h"

namespace softlookup::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class RowFilterTest : public IntegrationTest {};

TEST_F(RowFilterTest, EveryFieldOfAFilterLeavesItsRows) {
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
    Create("other", 1, 1);
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
    ASSERT_THAT(DeleteStore("other"), IsGrpcOk());
  }
}

TEST_F(RowFilterTest, BadReadsAreRefusedByFieldInEveryMethodThatTakesThem) {
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
  EXPECT_EQ(ReasonOf(unknown), "MEMORY_NOT_FOUND");
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

}  // namespace
}  // namespace softlookup::testing
