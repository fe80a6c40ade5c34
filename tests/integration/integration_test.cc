#include "tests/integration/integration_test.h"

#include <cmath>
#include <cstring>

#include "absl/time/clock.h"
#include "google/rpc/status.pb.h"
#include "tests/testing/patient_options.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::testing {

FloatMatrixView View(const std::vector<float>& floats, std::int64_t cols) {
  return Rows(floats, cols, 0, static_cast<std::int64_t>(floats.size()) / cols);
}

FloatMatrixView Rows(const std::vector<float>& floats, std::int64_t cols, std::int64_t begin,
                     std::int64_t count) {
  return {absl::MakeConstSpan(floats).subspan(begin * cols, count * cols),
          static_cast<std::uint32_t>(count), static_cast<std::uint32_t>(cols)};
}

v1::Matrix Message(const std::vector<float>& floats, std::int64_t cols) {
  v1::Matrix matrix;
  matrix.set_rows(static_cast<std::uint32_t>(static_cast<std::int64_t>(floats.size()) / cols));
  matrix.set_cols(static_cast<std::uint32_t>(cols));
  matrix.set_data(floats.data(), floats.size() * sizeof(float));
  return matrix;
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

v1::AttentionOptions Message(const AttentionOptions& options) {
  v1::AttentionOptions message;
  message.set_score(static_cast<v1::Score>(options.score));
  if (options.temperature) message.set_temperature(*options.temperature);
  message.set_mode(static_cast<v1::Mode>(options.mode));
  message.set_top_k(options.top_k);
  if (options.min_score) message.set_min_score(*options.min_score);
  if (options.recency_decay) message.set_recency_decay(*options.recency_decay);
  message.set_causal(options.causal);
  message.set_causal_offset(options.causal_offset);
  message.set_weights(static_cast<v1::WeightsMode>(options.weights));
  message.set_top_weights(options.top_weights);
  if (options.max_error) message.set_max_error(*options.max_error);
  return message;
}

v1::Store StoreMessage(const std::string& name, std::int64_t key_dim, std::int64_t value_dim,
                       std::int64_t num_heads) {
  v1::Store store;
  store.set_name(name);
  store.set_key_dim(static_cast<std::uint32_t>(key_dim));
  store.set_value_dim(static_cast<std::uint32_t>(value_dim));
  store.set_num_heads(static_cast<std::uint32_t>(num_heads));
  return store;
}

std::vector<double> Dense(const v1::QueryWeights& weights, std::int64_t row_count) {
  std::vector<double> dense(row_count);
  for (int i = 0; i < weights.positions_size(); ++i) {
    dense.at(weights.positions(i)) = weights.weights(i);
  }
  return dense;
}

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

void ExpectClose(double actual, double expected, const std::string& what) {
  if (actual == expected) return;
  EXPECT_NEAR(actual, expected, 1e-5) << what;
}

google::rpc::ErrorInfo InfoOf(const grpc::Status& status) {
  google::rpc::Status details;
  google::rpc::ErrorInfo info;
  if (details.ParseFromString(status.error_details()) && details.details_size() > 0 &&
      details.code() == status.error_code()) {
    details.details(0).UnpackTo(&info);
  }
  return info;
}

std::string ReasonOf(const grpc::Status& status) {
  const google::rpc::ErrorInfo info = InfoOf(status);
  return info.domain() == "softlookup" ? info.reason() : "";
}

CallContext::CallContext() { set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60))); }

IntegrationTest::IntegrationTest(const std::vector<std::string>& flags)
    : server_(flags),
      client_(*Client::Connect(server_.grpc_address(), PatientOptions())),
      stub_(v1::SoftLookup::NewStub(Channel(server_))) {}

std::shared_ptr<grpc::Channel> IntegrationTest::Channel(const ServerProcess& server) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  return grpc::CreateCustomChannel(server.grpc_address(), grpc::InsecureChannelCredentials(),
                                   arguments);
}

void IntegrationTest::Create(const std::string& name, std::int64_t key_dim, std::int64_t value_dim,
                             std::int64_t num_heads) {
  ASSERT_THAT(CreateStore(StoreMessage(name, key_dim, value_dim, num_heads)), IsGrpcOk());
}

v1::Store IntegrationTest::GetStore(const std::string& name) {
  v1::GetStoreRequest request;
  request.set_name(name);
  v1::Store store;
  EXPECT_THAT(Call(&v1::SoftLookup::Stub::GetStore, request, &store), IsGrpcOk());
  return store;
}

grpc::Status IntegrationTest::CreateStore(const v1::Store& store) {
  v1::CreateStoreRequest request;
  *request.mutable_store() = store;
  v1::Store response;
  return Call(&v1::SoftLookup::Stub::CreateStore, request, &response);
}

grpc::Status IntegrationTest::DeleteStore(const std::string& name) {
  v1::DeleteStoreRequest request;
  request.set_name(name);
  v1::DeleteStoreResponse response;
  return Call(&v1::SoftLookup::Stub::DeleteStore, request, &response);
}

grpc::Status IntegrationTest::Append(const v1::AppendRequest& request,
                                     v1::AppendResponse* response) {
  v1::AppendResponse unused;
  return Call(&v1::SoftLookup::Stub::Append, request, response == nullptr ? &unused : response);
}

grpc::Status IntegrationTest::Lookup(const v1::LookupRequest& request,
                                     v1::LookupResponse* response) {
  return Call(&v1::SoftLookup::Stub::Lookup, request, response);
}

grpc::Status IntegrationTest::DeleteRows(const std::string& store, const v1::RowFilter& filter,
                                         v1::DeleteRowsResponse* response) {
  v1::DeleteRowsRequest request;
  request.set_store(store);
  *request.mutable_filter() = filter;
  return Call(&v1::SoftLookup::Stub::DeleteRows, request, response);
}

grpc::Status IntegrationTest::GetMemory(const std::string& store, const std::string& name,
                                        std::optional<std::uint64_t> begin,
                                        std::optional<std::uint64_t> end, v1::Memory* response) {
  v1::GetMemoryRequest request;
  request.set_store(store);
  request.set_name(name);
  if (begin) request.set_begin(*begin);
  if (end) request.set_end(*end);
  return Call(&v1::SoftLookup::Stub::GetMemory, request, response);
}

grpc::Status IntegrationTest::ReadRows(const v1::ReadRowsRequest& request,
                                       std::vector<v1::ReadRowsResponse>* pages) {
  CallContext context;
  const auto reader = stub_->ReadRows(&context, request);
  pages->clear();
  v1::ReadRowsResponse page;
  while (reader->Read(&page)) pages->push_back(page);
  return reader->Finish();
}

std::vector<v1::Row> IntegrationTest::RowsOf(const std::string& store,
                                             const v1::RowFilter& filter) {
  v1::ReadRowsRequest request;
  request.set_store(store);
  *request.mutable_filter() = filter;
  std::vector<v1::ReadRowsResponse> pages;
  EXPECT_THAT(ReadRows(request, &pages), IsGrpcOk());
  std::vector<v1::Row> rows;
  for (const auto& page : pages) rows.insert(rows.end(), page.rows().begin(), page.rows().end());
  return rows;
}

std::vector<std::uint64_t> IntegrationTest::PositionsOf(const std::string& store,
                                                        const v1::RowFilter& filter) {
  std::vector<std::uint64_t> positions;
  for (const v1::Row& row : RowsOf(store, filter)) positions.push_back(row.position());
  return positions;
}

v1::AppendRequest IntegrationTest::TwoRows() {
  v1::AppendRequest request;
  request.set_store("s");
  *request.mutable_keys() = Message({1, 2, 3, 4}, 2);
  *request.mutable_values() = Message({5, 6}, 1);
  return request;
}

v1::AppendRequest IntegrationTest::RowsWithIds(std::uint64_t first_id, int count, float value,
                                               v1::OnConflict on_conflict) {
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

v1::LookupRequest IntegrationTest::OneQuery() {
  v1::LookupRequest request;
  request.set_store("s");
  *request.mutable_queries() = Message({1}, 1);
  request.mutable_options()->set_weights(v1::WEIGHTS_MODE_ALL);
  return request;
}

}  // namespace softlookup::testing
