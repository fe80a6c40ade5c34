// What no client may do to the server, nor any store to those who ask about it.
#include <signal.h>

#include <functional>
#include <thread>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "tests/client/tool/temporary_file.h"
#include "tests/integration/integration_test.h"
#include "tests/testing/patient_options.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::testing {
namespace {

constexpr std::size_t kMessageBytesMax = 100'000;

// A store with maps of [4 x input_dim] each.
v1::Store StoreWithProjection(const std::string& name, std::uint32_t input_dim) {
  v1::Store store;
  store.set_name(name);
  store.set_key_dim(4);
  store.set_value_dim(4);
  v1::Projection& projection = *store.mutable_projection();
  for (v1::Matrix* map :
       {projection.mutable_query(), projection.mutable_key(), projection.mutable_value()}) {
    *map = Message(std::vector<float>(4 * input_dim, 1), input_dim);
  }
  return store;
}

class LimitsTest : public IntegrationTest {
 protected:
  LimitsTest() : IntegrationTest({"--max-message-bytes", std::to_string(kMessageBytesMax)}) {}

  grpc::Status List(const v1::ListStoresRequest& request, v1::ListStoresResponse& response) {
    grpc::ClientContext context;
    return stub_->ListStores(&context, request, &response);
  }
};

// Eighteen stores of 63 MB each once made an answer that gRPC could not send, and the server died.
TEST_F(LimitsTest, APageOfStoresEndsBeforeTheMessageLimit) {
  constexpr int kCount = 23;
  for (int i = 0; i < kCount; ++i) {
    // 24 kB each, but now and then 96 kB or next to nothing.
    const std::uint32_t input_dim = i % 7 == 3 ? 2000 : i % 5 == 0 ? 1 : 500;
    ASSERT_THAT(client_.CreateStore(StoreWithProjection(std::to_string(100 + i), input_dim)),
                IsOk());
  }
  for (const int page_size : {0, 1, 2, 3, 1000}) {
    v1::ListStoresRequest request;
    request.set_page_size(page_size);
    int listed = 0, pages = 0;
    do {
      v1::ListStoresResponse response;
      const grpc::Status status = List(request, response);
      ASSERT_TRUE(status.ok()) << status.error_message();
      EXPECT_LE(response.ByteSizeLong(), kMessageBytesMax);
      ASSERT_GE(response.stores_size(), 1);
      EXPECT_LE(response.stores_size(), page_size == 0 ? 100 : page_size);
      for (const v1::Store& store : response.stores()) {
        EXPECT_EQ(store.name(), std::to_string(100 + listed++));
        EXPECT_FALSE(store.projection().query().data().empty());
      }
      request.set_page_token(response.next_page_token());
      ++pages;
    } while (!request.page_token().empty());
    EXPECT_EQ(listed, kCount);
    EXPECT_LT(pages, page_size == 1 ? kCount + 1 : kCount);
  }
}

TEST_F(LimitsTest, AStoreThatNoMessageCouldTellOfIsRefused) {
  // As bfloat16 it comes in half the bytes that it is told in.
  v1::Store store = StoreWithProjection("s", 2500);
  v1::Projection& projection = *store.mutable_projection();
  for (v1::Matrix* map :
       {projection.mutable_query(), projection.mutable_key(), projection.mutable_value()}) {
    map->set_element_type(v1::ELEMENT_TYPE_BFLOAT16);
    map->set_data(std::string(2 * 4 * 2500, '\0'));
  }
  grpc::ClientContext create_context;
  v1::CreateStoreRequest create;
  *create.mutable_store() = store;
  ASSERT_LT(create.ByteSizeLong(), kMessageBytesMax);
  v1::Store response;
  const grpc::Status created = stub_->CreateStore(&create_context, create, &response);
  EXPECT_EQ(created.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(InfoOf(created).reason(), "ANSWER_TOO_LARGE");
  EXPECT_THAT(client_.GetStore("s"), StatusIs(absl::StatusCode::kNotFound, ""));

  ASSERT_THAT(client_.CreateStore(StoreWithProjection("s", 2)), IsOk());
  EXPECT_THAT(client_.UpdateStore(store, {"projection"}),
              StatusIs(absl::StatusCode::kResourceExhausted, "the limit is 100000"));
  // Each fits, but not both: 60 kB of labels, then 90 kB of projection.
  v1::Store labels;
  labels.set_name("s");
  for (int i = 0; i < 60; ++i) (*labels.mutable_labels())[std::to_string(i)].assign(1000, 'x');
  ASSERT_THAT(client_.UpdateStore(labels, {"labels"}), IsOk());
  EXPECT_THAT(client_.UpdateStore(StoreWithProjection("s", 1900), {"projection"}),
              StatusIs(absl::StatusCode::kResourceExhausted, ""));
  EXPECT_EQ(client_.GetStore("s")->projection().query().cols(), 2u);
  EXPECT_EQ(client_.GetStore("s")->revision(), 2u);
}

TEST_F(LimitsTest, ANameThatMakesAStoreTooLargeToTellOfIsRefused) {
  std::uint32_t input_dim = kMessageBytesMax / (3 * 4 * sizeof(float));
  while (!client_.CreateStore(StoreWithProjection("s", input_dim)).ok()) {
    ASSERT_GT(--input_dim, 2000u);
  }
  EXPECT_THAT(client_.RenameStore("s", std::string(128, 'a')),
              StatusIs(absl::StatusCode::kResourceExhausted, "the limit is 100000"));
  EXPECT_EQ(client_.GetStore("s")->revision(), 1u);
  const auto renamed = client_.RenameStore("s", "t");
  ASSERT_THAT(renamed, IsOk());
  EXPECT_LE(renamed->ByteSizeLong(), kMessageBytesMax);
  EXPECT_THAT(client_.GetStore("t"), IsOk());
}

TEST_F(LimitsTest, EveryCallKeepsTheMessageLimit) {
  Create("s", 2, 1);
  // Over the limit, but not so far that gRPC itself would refuse it.
  const std::string name(kMessageBytesMax + 1000, 'a');
  v1::RowFilter filter;
  for (std::size_t i = 0; i < kMessageBytesMax; ++i) filter.add_ids(i % 100);
  const auto expect_refused = [](const char* call, const grpc::Status& status) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED)
        << call << ": " << status.error_message();
    EXPECT_EQ(InfoOf(status).reason(), "MESSAGE_TOO_LARGE") << call;
  };
  const auto unary = [&](const char* call, auto method, auto request, auto response) {
    grpc::ClientContext context;
    expect_refused(call, ((*stub_).*method)(&context, request, &response));
  };
  using Stub = v1::SoftLookup::Stub;
  v1::CreateStoreRequest create;
  create.mutable_store()->set_name(name);
  unary("CreateStore", &Stub::CreateStore, create, v1::Store());
  v1::GetStoreRequest get;
  get.set_name(name);
  unary("GetStore", &Stub::GetStore, get, v1::Store());
  v1::ListStoresRequest list;
  list.set_prefix(name);
  unary("ListStores", &Stub::ListStores, list, v1::ListStoresResponse());
  v1::UpdateStoreRequest update;
  update.mutable_store()->set_name("s");
  update.mutable_update_mask()->add_paths("labels");
  (*update.mutable_store()->mutable_labels())["a"] = name;
  unary("UpdateStore", &Stub::UpdateStore, update, v1::Store());
  v1::RenameStoreRequest rename;
  rename.set_store("s");
  rename.set_new_name(name);
  unary("RenameStore", &Stub::RenameStore, rename, v1::RenameStoreResponse());
  v1::CompactStoreRequest compact;
  compact.set_name(name);
  unary("CompactStore", &Stub::CompactStore, compact, v1::CompactStoreResponse());
  v1::DeleteStoreRequest remove;
  remove.set_name(name);
  unary("DeleteStore", &Stub::DeleteStore, remove, v1::DeleteStoreResponse());
  v1::DeleteRowsRequest delete_rows;
  delete_rows.set_store("s");
  *delete_rows.mutable_filter() = filter;
  unary("DeleteRows", &Stub::DeleteRows, delete_rows, v1::DeleteRowsResponse());
  v1::LookupRequest lookup;
  lookup.set_store("s");
  *lookup.mutable_filter() = filter;
  unary("Lookup", &Stub::Lookup, lookup, v1::LookupResponse());
  v1::GetMemoryRequest memory;
  memory.set_store("s");
  memory.set_name(name);
  unary("GetMemory", &Stub::GetMemory, memory, v1::Memory());
  v1::GetWriterRequest writer;
  writer.set_store("s");
  writer.set_writer(name);
  unary("GetWriter", &Stub::GetWriter, writer, v1::Writer());
  {
    grpc::ClientContext context;
    v1::ReadRowsRequest request;
    request.set_store("s");
    *request.mutable_filter() = filter;
    const auto reader = stub_->ReadRows(&context, request);
    v1::ReadRowsResponse page;
    while (reader->Read(&page)) {
    }
    expect_refused("ReadRows", reader->Finish());
  }
  {
    grpc::ClientContext context;
    v1::WatchMemoryRequest request;
    request.set_store("s");
    request.set_name(name);
    expect_refused("WatchMemory", stub_->WatchMemory(&context, request)->Finish());
  }
}

// Half a character in LookupResponse.error once ended the stream at the client.
TEST_F(LimitsTest, AStreamOutlivesAnErrorThatQuotesALongName) {
  Create("s", 2, 1);
  grpc::ClientContext context;
  const auto stream = stub_->StreamLookup(&context);
  v1::LookupRequest request;
  request.set_store("s");
  *request.mutable_queries() = Message({1, 2}, 2);
  request.set_source(v1::SOURCE_MEMORY);
  v1::LookupResponse response;
  for (int offset = 0; offset < 4; ++offset) {
    std::string memory(offset, 'x');
    for (int i = 0; i < 1000; ++i) memory += "\U0001f600";
    request.set_memory(memory);
    ASSERT_TRUE(stream->Write(request));
    ASSERT_TRUE(stream->Read(&response));
    ASSERT_EQ(response.error().details_size(), 1);
    google::rpc::ErrorInfo info;
    EXPECT_TRUE(response.error().details(0).UnpackTo(&info));
    EXPECT_EQ(info.reason(), "MEMORY_NOT_FOUND");

    grpc::ClientContext unary_context;
    EXPECT_EQ(InfoOf(stub_->Lookup(&unary_context, request, &response)).reason(),
              "MEMORY_NOT_FOUND");
  }
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

// It once held up every stop for the whole grace period.
TEST(StopTest, ALookupThatWaitsForARevisionHearsThatTheServerStops) {
  ServerProcess server;
  const auto stub = v1::SoftLookup::NewStub(
      grpc::CreateChannel(server.grpc_address(), grpc::InsecureChannelCredentials()));
  v1::CreateStoreRequest create;
  create.mutable_store()->set_name("s");
  create.mutable_store()->set_key_dim(2);
  create.mutable_store()->set_value_dim(1);
  v1::Store store;
  grpc::ClientContext create_context, lookup_context, behind_context;
  ASSERT_TRUE(stub->CreateStore(&create_context, create, &store).ok());

  v1::LookupRequest request;
  request.set_store("s");
  *request.mutable_queries() = Message({1, 2}, 2);
  request.set_min_revision(99);
  grpc::CompletionQueue queue;
  v1::LookupResponse response;
  grpc::Status status;
  const auto call = stub->AsyncLookup(&lookup_context, request, &queue);
  call->Finish(&response, &status, nullptr);
  // A call behind it on the same connection: when that one is answered, it has reached the server.
  v1::GetStoreRequest behind;
  behind.set_name("s");
  ASSERT_TRUE(stub->GetStore(&behind_context, behind, &store).ok());

  std::thread waiter([&] {
    void* tag = nullptr;
    bool ok = false;
    ASSERT_TRUE(queue.Next(&tag, &ok));
  });
  EXPECT_EQ(server.Stop(SIGTERM), 0);
  waiter.join();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(InfoOf(status).reason(), "SHUTTING_DOWN");
}

// Appends 100 rows of 64 + 64 components at a time until that is refused. Returns with what.
grpc::Status Fill(v1::SoftLookup::Stub& stub, const std::string& store) {
  v1::AppendRequest request;
  request.set_store(store);
  *request.mutable_keys() = *request.mutable_values() =
      Message(std::vector<float>(100 * 64, 0.5f), 64);
  for (;;) {
    grpc::ClientContext context;
    v1::AppendResponse response;
    const grpc::Status status = stub.Append(&context, request, &response);
    if (!status.ok()) return status;
  }
}

TEST(MemoryLimitTest, AnAppendOverItIsRefusedUntilThereIsRoomAlsoAfterARestart) {
  const TemporaryFile file("file");
  const std::string directory = file.path() + ".data";
  {
    ServerProcess server({"--data-dir", directory, "--memory-limit", "2MiB"});
    Client client = *Client::Connect(server.grpc_address(), PatientOptions());
    const auto stub = v1::SoftLookup::NewStub(
        grpc::CreateChannel(server.grpc_address(), grpc::InsecureChannelCredentials()));
    v1::Store store;
    store.set_key_dim(64);
    store.set_value_dim(64);
    for (const char* name : {"a", "b"}) {
      store.set_name(name);
      ASSERT_THAT(client.CreateStore(store), IsOk());
    }
    const grpc::Status refused = Fill(*stub, "a");
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_EQ(InfoOf(refused).reason(), "MEMORY_LIMIT");
    EXPECT_EQ(InfoOf(refused).metadata().at("limit"), "2097152");
    const v1::Store a = *client.GetStore("a");
    EXPECT_LE(a.byte_size(), 2u << 20);
    EXPECT_GT(a.byte_size(), 3u << 19);
    EXPECT_EQ(a.row_count() % 100, 0u);
    EXPECT_EQ(a.revision(), 1 + a.row_count() / 100);
    EXPECT_EQ(server.Stop(SIGTERM), 0);
  }
  const ServerProcess server({"--data-dir", directory, "--memory-limit", "1MiB"});
  Client client = *Client::Connect(server.grpc_address(), PatientOptions());
  const auto stub = v1::SoftLookup::NewStub(
      grpc::CreateChannel(server.grpc_address(), grpc::InsecureChannelCredentials()));
  EXPECT_GE(client.GetStore("a")->row_count(), 3000u);
  EXPECT_EQ(InfoOf(Fill(*stub, "b")).reason(), "MEMORY_LIMIT");
  EXPECT_EQ(client.GetStore("b")->row_count(), 0u);
  ASSERT_THAT(client.DeleteStore("a"), IsOk());
  EXPECT_EQ(InfoOf(Fill(*stub, "b")).reason(), "MEMORY_LIMIT");
  EXPECT_GE(client.GetStore("b")->row_count(), 1000u);
}

TEST(RestartTest, AStoreFromWhenTheLimitWasHigherHidesNoOther) {
  const TemporaryFile file("file");
  const std::string directory = file.path() + ".data";
  {
    ServerProcess server({"--data-dir", directory});
    Client client = *Client::Connect(server.grpc_address(), PatientOptions());
    for (const char* name : {"a", "c"}) {
      ASSERT_THAT(client.CreateStore(StoreWithProjection(name, 1)), IsOk());
    }
    ASSERT_THAT(client.CreateStore(StoreWithProjection("b", 5000)), IsOk());
    EXPECT_EQ(server.Stop(SIGKILL), 128 + SIGKILL);
  }
  const ServerProcess server(
      {"--data-dir", directory, "--max-message-bytes", std::to_string(kMessageBytesMax)});
  const auto stub = v1::SoftLookup::NewStub(
      grpc::CreateChannel(server.grpc_address(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext list_context, get_context;
  v1::ListStoresResponse list;
  ASSERT_TRUE(stub->ListStores(&list_context, v1::ListStoresRequest(), &list).ok());
  ASSERT_EQ(list.stores_size(), 3);
  EXPECT_FALSE(list.stores(0).projection().query().data().empty());
  EXPECT_EQ(list.stores(1).name(), "b");
  EXPECT_EQ(list.stores(1).projection().query().cols(), 5000u);
  EXPECT_THAT(list.stores(1).projection().query().data(), ::testing::IsEmpty());
  v1::GetStoreRequest get;
  get.set_name("b");
  v1::Store store;
  const grpc::Status status = stub->GetStore(&get_context, get, &store);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(InfoOf(status).reason(), "ANSWER_TOO_LARGE");
}

}  // namespace
}  // namespace softlookup::testing
