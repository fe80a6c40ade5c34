#include "server/router/routes.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/base/method.h"
#include "softlookup/admin/v1/admin.pb.h"
#include "softlookup/v1/lookup.pb.h"
#include "softlookup/v1/row.pb.h"
#include "softlookup/v1/soft_lookup.pb.h"
#include "softlookup/v1/store.pb.h"
#include "tests/server/router/wire_bytes.h"

namespace softlookup::server {
namespace {

// Returns the store that a request is about, as its parser sees it; nullopt if it is malformed.
using ParsedStore = std::function<std::optional<std::string>(const std::string& bytes)>;

template <typename Request, typename Read>
ParsedStore Parsed(Read read) {
  return [read](const std::string& bytes) -> std::optional<std::string> {
    Request request;
    if (!request.ParseFromString(bytes)) return std::nullopt;
    return std::string(read(request));
  };
}

template <typename Request>
ParsedStore ByStore() {
  return Parsed<Request>([](const Request& request) { return request.store(); });
}
template <typename Request>
ParsedStore ByName() {
  return Parsed<Request>([](const Request& request) { return request.name(); });
}
template <typename Request>
ParsedStore ByStoreName() {
  return Parsed<Request>([](const Request& request) { return request.store().name(); });
}

const std::map<Method, ParsedStore>& ParsedStores() {
  static const auto* const stores = new std::map<Method, ParsedStore>{
      {Method::kCreateStore, ByStoreName<v1::CreateStoreRequest>()},
      {Method::kUpdateStore, ByStoreName<v1::UpdateStoreRequest>()},
      {Method::kGetStore, ByName<v1::GetStoreRequest>()},
      {Method::kDeleteStore, ByName<v1::DeleteStoreRequest>()},
      {Method::kCompactStore, ByName<v1::CompactStoreRequest>()},
      {Method::kRenameStore, ByStore<v1::RenameStoreRequest>()},
      {Method::kAppend, ByStore<v1::AppendRequest>()},
      {Method::kStreamAppend, ByStore<v1::AppendRequest>()},
      {Method::kReadRows, ByStore<v1::ReadRowsRequest>()},
      {Method::kDeleteRows, ByStore<v1::DeleteRowsRequest>()},
      {Method::kLookup, ByStore<v1::LookupRequest>()},
      {Method::kStreamLookup, ByStore<v1::LookupRequest>()},
      {Method::kGetMemory, ByStore<v1::GetMemoryRequest>()},
      {Method::kWatchMemory, ByStore<v1::WatchMemoryRequest>()},
      {Method::kGetWriter, ByStore<v1::GetWriterRequest>()},
      {Method::kSplitStore, ByStore<admin::v1::SplitStoreRequest>()},
      {Method::kMoveRange, ByStore<admin::v1::MoveRangeRequest>()},
      {Method::kGetRanges, ByStore<admin::v1::GetRangesRequest>()},
      {Method::kRestoreStore,
       Parsed<admin::v1::RestoreStoreRequest>([](const admin::v1::RestoreStoreRequest& request) {
         return request.name().empty() ? request.store() : request.name();
       })}};
  return *stores;
}

// Fields of any kind, in any order, some of them in others.
std::string RandomFields(std::mt19937& random, int depth) {
  const auto draw = [&](unsigned count) { return static_cast<int>(random() % count); };
  std::string bytes;
  for (int count = draw(5); count > 0; --count) {
    const int field = 1 + draw(4);
    switch (draw(depth > 0 ? 4 : 3)) {
      case 0:
        bytes += TextBytes(field, std::string(draw(4), static_cast<char>('a' + draw(26))));
        break;
      case 1:
        bytes += NumberBytes(field, random());
        break;
      case 2:
        bytes += Varint(static_cast<std::uint64_t>(100 + field) << 3 | 5) + "four";
        break;
      default:
        bytes += TextBytes(field, RandomFields(random, depth - 1));
    }
  }
  return bytes;
}

std::string StoreIn(Method method, const std::string& bytes) {
  grpc::ByteBuffer request = BufferOf(bytes, 7);
  return StoreOf(method, request);
}

TEST(RoutesTest, EveryMethodOfTheServicesHasARoute) {
  int methods = 0;
  for (const auto* file : {v1::LookupRequest::descriptor()->file()->pool()->FindFileByName(
                               "softlookup/v1/soft_lookup.proto"),
                           admin::v1::Group::descriptor()->file()}) {
    ASSERT_NE(file, nullptr);
    for (int s = 0; s < file->service_count(); ++s) {
      for (int m = 0; m < file->service(s)->method_count(); ++m) {
        const auto& described = *file->service(s)->method(m);
        const MethodSpec* const spec =
            FindMethod(absl::StrCat("/", file->service(s)->full_name(), "/", described.name()));
        ASSERT_NE(spec, nullptr) << described.full_name();
        ++methods;
        const RoutedTo route = RoutedToOf(spec->method);
        EXPECT_NE(route, RoutedTo::kRouter) << described.full_name();
        const bool is_stream = described.client_streaming() || described.server_streaming();
        EXPECT_EQ(route == RoutedTo::kStream || route == RoutedTo::kLookupStream, is_stream)
            << described.full_name();
        if (spec->makes_changes) {
          EXPECT_TRUE(route == RoutedTo::kPrimary || route == RoutedTo::kOnlyGroup ||
                      spec->method == Method::kStreamAppend)
              << described.full_name();
        }
        const bool is_about_a_store = ParsedStores().count(spec->method) > 0;
        EXPECT_EQ(StoreIn(spec->method, "\x0a\x03\x0a\x01s\x12\x01s\x1a\x01s") != "",
                  is_about_a_store)
            << described.full_name();
      }
    }
  }
  EXPECT_EQ(methods, static_cast<int>(kMethodCount) - 7)
      << "without health, reflection and what only routers call";
}

TEST(RoutesTest, TheStoreIsThatOfTheParsedRequestHoweverItIsWritten) {
  google::protobuf::SetLogHandler(nullptr);  // Of names that are not UTF-8.
  for (const auto& [method, parsed] : ParsedStores()) {
    SCOPED_TRACE(std::string(NameOf(method)));
    std::mt19937 random(1);
    int stores = 0, malformed = 0;
    for (int i = 0; i < 20'000; ++i) {
      std::string bytes = RandomFields(random, 2);
      if (random() % 4 == 0) bytes.resize(random() % (bytes.size() + 1));
      if (random() % 4 == 0 && !bytes.empty()) bytes[random() % bytes.size()] ^= 1 << random() % 8;
      const std::string found = StoreIn(method, bytes);  // Whatever the bytes are.
      const std::optional<std::string> store = parsed(bytes);
      malformed += !store.has_value();
      if (!store.has_value()) continue;
      stores += !store->empty();
      ASSERT_EQ(found, *store) << ::testing::PrintToString(bytes);
    }
    EXPECT_GT(stores, 100);
    EXPECT_GT(malformed, 1'000);
  }
}

TEST(RoutesTest, OnlyWhatHappensOnceMayBeSentTwice) {
  const auto repeat = [](Method method, const std::string& bytes) {
    grpc::ByteBuffer request = BufferOf(bytes);
    return RepeatOf(method, request);
  };
  for (const Method method :
       {Method::kGetStore, Method::kListStores, Method::kReadRows, Method::kLookup,
        Method::kGetMemory, Method::kGetWriter, Method::kGetRanges}) {
    EXPECT_EQ(repeat(method, ""), Repeat::kAllowed) << NameOf(method);
  }
  for (const Method method :
       {Method::kCreateStore, Method::kUpdateStore, Method::kRenameStore, Method::kDeleteStore,
        Method::kDeleteRows, Method::kAppend, Method::kRestoreStore, Method::kMovePrimary,
        Method::kSplitStore, Method::kMoveRange}) {
    EXPECT_EQ(repeat(method, ""), Repeat::kNever) << NameOf(method);
  }
  v1::AppendRequest append;
  append.set_writer("w");
  EXPECT_EQ(repeat(Method::kAppend, append.SerializeAsString()), Repeat::kNever);
  append.set_sequence(1);
  EXPECT_EQ(repeat(Method::kAppend, append.SerializeAsString()), Repeat::kAllowed);
  append.clear_writer();
  EXPECT_EQ(repeat(Method::kAppend, append.SerializeAsString()), Repeat::kNever);
}

template <typename Response>
std::optional<std::uint64_t> NeededAfter(Method method, const Response& response) {
  SeenRevisions revisions;
  grpc::ByteBuffer bytes = BufferOf(response.SerializeAsString());
  NoteAnswer(method, "s", "", bytes, revisions);
  return revisions.Needed("s");
}

TEST(RoutesTest, TheRevisionIsThatOfTheAnswer) {
  v1::Store store;
  store.set_name("s");
  store.set_revision(7);
  for (const Method method : {Method::kCreateStore, Method::kGetStore, Method::kUpdateStore}) {
    EXPECT_EQ(NeededAfter(method, store), 7u) << NameOf(method);
  }
  v1::AppendResponse append;
  append.set_first_position(1);
  append.set_appended_count(2);
  append.set_row_count(3);
  append.set_revision(7);
  EXPECT_EQ(NeededAfter(Method::kAppend, append), 7u);
  EXPECT_EQ(NeededAfter(Method::kStreamAppend, append), 7u);
  v1::ReadRowsResponse rows;
  rows.add_rows()->set_position(9);
  rows.set_revision(7);
  EXPECT_EQ(NeededAfter(Method::kReadRows, rows), 7u);
  v1::DeleteRowsResponse deleted;
  deleted.set_deleted_count(9);
  deleted.set_revision(7);
  EXPECT_EQ(NeededAfter(Method::kDeleteRows, deleted), 7u);
  v1::Memory memory;
  memory.set_begin(1);
  memory.set_end(9);
  memory.set_revision(7);
  EXPECT_EQ(NeededAfter(Method::kGetMemory, memory), 7u);
  EXPECT_EQ(NeededAfter(Method::kWatchMemory, memory), 7u);
  v1::CompactStoreResponse compacted;
  compacted.mutable_store()->set_revision(7);
  EXPECT_EQ(NeededAfter(Method::kCompactStore, compacted), 7u);
  admin::v1::StoreRanges ranges;
  ranges.set_store("s");
  ranges.set_row_count(9);
  ranges.add_ranges()->set_begin(5);
  ranges.set_revision(7);
  for (const Method method : {Method::kSplitStore, Method::kMoveRange, Method::kGetRanges}) {
    EXPECT_EQ(NeededAfter(method, ranges), 7u) << NameOf(method);
  }
}

TEST(RoutesTest, AfterAStoreWasReplacedThePrimaryIsAsked) {
  EXPECT_EQ(NeededAfter(Method::kDeleteStore, v1::DeleteStoreResponse()), std::nullopt);
  EXPECT_EQ(NeededAfter(Method::kRestoreStore, admin::v1::RestoreStoreResponse()), std::nullopt);
  SeenRevisions revisions;
  revisions.Note("a", 5);
  grpc::ByteBuffer bytes = BufferOf("");
  NoteAnswer(Method::kRenameStore, "a", "b", bytes, revisions);
  EXPECT_EQ(revisions.Needed("a"), std::nullopt);
  EXPECT_EQ(revisions.Needed("b"), std::nullopt);
}

TEST(RoutesTest, TheChangedRowsAreThoseOfTheAnswer) {
  const auto changed = [](Method method, const std::string& bytes) {
    grpc::ByteBuffer response = BufferOf(bytes);
    return ChangedRows(method, response);
  };
  v1::AppendResponse append;
  append.set_first_position(1);
  append.set_appended_count(2);
  EXPECT_EQ(changed(Method::kAppend, append.SerializeAsString()), 2u);
  EXPECT_EQ(changed(Method::kStreamAppend, append.SerializeAsString()), 2u);
  v1::DeleteRowsResponse deleted;
  deleted.set_deleted_count(3);
  EXPECT_EQ(changed(Method::kDeleteRows, deleted.SerializeAsString()), 3u);
  v1::CompactStoreResponse compacted;
  compacted.set_dropped_rows(4);
  compacted.set_compacted_blocks(9);
  EXPECT_EQ(changed(Method::kCompactStore, compacted.SerializeAsString()), 4u);
  admin::v1::RestoreStoreResponse restored;
  restored.mutable_store()->set_revision(9);
  restored.mutable_store()->set_row_count(5);
  restored.mutable_store()->set_live_row_count(8);
  EXPECT_EQ(changed(Method::kRestoreStore, restored.SerializeAsString()), 5u);
  EXPECT_EQ(changed(Method::kUpdateStore, append.SerializeAsString()), std::nullopt);
}

}  // namespace
}  // namespace softlookup::server
