#include "client/loadtest/traffic.h"

#include <grpcpp/support/slice.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/status_macros.h"
#include "client/loadtest/connections.h"
#include "softlookup/v1/lookup.pb.h"
#include "softlookup/v1/row.pb.h"

namespace softlookup::loadtest {
namespace {

// A content is the part of a request that does not name the store: queries with options, or rows.
constexpr std::uint32_t kContentsMax = 64;          // Contents per method.
constexpr std::size_t kContentBytesMax = 64 << 20;  // Bytes of all contents of a method together.

grpc::Slice ToSlice(const google::protobuf::MessageLite& message) {
  return grpc::Slice(message.SerializeAsString());
}

// Returns, for each store, the first part of a request: the encoded field `store`. The second part
// is the content. Protobuf parses both parts, one behind the other, as one message.
template <typename Request>
std::vector<grpc::Slice> StoreParts(const std::vector<std::string>& stores) {
  std::vector<grpc::Slice> parts;
  for (const std::string& store : stores) {
    Request request;
    request.set_store(store);
    parts.push_back(ToSlice(request));
  }
  return parts;
}

absl::StatusOr<std::vector<grpc::Slice>> LookupParts(const TrafficOptions& options,
                                                     const RowSource& rows, std::uint32_t count) {
  std::vector<grpc::Slice> parts;
  for (std::uint32_t set = 0; set < count; ++set) {
    const FloatMatrix queries = rows.Queries(set, options.queries);
    v1::LookupRequest request;
    CLIENT_RETURN_IF_ERROR(FloatMatrixView(queries).ToProto(request.mutable_queries()));
    *request.mutable_options() = options.attention;
    parts.push_back(ToSlice(request));
  }
  return parts;
}

absl::StatusOr<std::vector<grpc::Slice>> AppendParts(const TrafficOptions& options,
                                                     const RowSource& rows, std::uint32_t count) {
  std::vector<grpc::Slice> parts;
  for (std::uint32_t batch = 0; batch < count; ++batch) {
    const RowSource::Rows appended = rows.AppendedRows(batch, options.append_rows);
    v1::AppendRequest request;
    CLIENT_RETURN_IF_ERROR(FloatMatrixView(appended.keys).ToProto(request.mutable_keys()));
    CLIENT_RETURN_IF_ERROR(FloatMatrixView(appended.values).ToProto(request.mutable_values()));
    parts.push_back(ToSlice(request));
  }
  return parts;
}

// Makes requests, each of one store part and one content. Every store gets the same number of
// requests, and every content is used.
std::vector<PreparedRequest> Join(Method method, const std::vector<grpc::Slice>& store_parts,
                                  const std::vector<grpc::Slice>& content_parts) {
  const std::size_t stores = store_parts.size();
  const std::size_t rounds = (content_parts.size() + stores - 1) / stores;
  std::vector<PreparedRequest> requests;
  for (std::size_t i = 0; i < rounds * stores; ++i) {
    const std::size_t store = i % stores;
    const std::size_t content = i % content_parts.size();
    const std::array<grpc::Slice, 2> parts = {store_parts[store], content_parts[content]};
    requests.push_back({method, static_cast<std::uint32_t>(store),
                        static_cast<std::uint32_t>(content),
                        grpc::ByteBuffer(parts.data(), parts.size())});
  }
  return requests;
}

// Returns how many different contents to make for a method if each has `numbers` floats. They are
// at most kContentsMax, and have at most kContentBytesMax bytes together. InvalidArgument if one
// content is too large for a message. `what` names the content in the error.
absl::StatusOr<std::uint32_t> ContentCount(std::uint64_t numbers, absl::string_view what) {
  const std::uint64_t bytes = numbers * sizeof(float);
  if (bytes >= kMessageBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " have ", bytes, " bytes; a message has at most ", kMessageBytesMax));
  }
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(kContentBytesMax / bytes, 1, kContentsMax));
}

}  // namespace

absl::StatusOr<Traffic> Traffic::Make(const TrafficOptions& options, const RowSource& rows,
                                      const std::vector<std::string>& stores) {
  Traffic traffic;
  traffic.mix_ = options.mix;
  if (options.mix.Has(Method::kLookup)) {
    CLIENT_ASSIGN_OR_RETURN(
        const std::uint32_t count,
        ContentCount(std::uint64_t{options.queries} * rows.key_dim(), "a lookup's queries"));
    CLIENT_ASSIGN_OR_RETURN(const auto parts, LookupParts(options, rows, count));
    traffic.lookups_ = Join(Method::kLookup, StoreParts<v1::LookupRequest>(stores), parts);
  }
  if (options.mix.Has(Method::kAppend)) {
    CLIENT_ASSIGN_OR_RETURN(const std::uint32_t count,
                            ContentCount(std::uint64_t{options.append_rows} *
                                             (std::uint64_t{rows.key_dim()} + rows.value_dim()),
                                         "an append's rows"));
    CLIENT_ASSIGN_OR_RETURN(const auto parts, AppendParts(options, rows, count));
    traffic.appends_ = Join(Method::kAppend, StoreParts<v1::AppendRequest>(stores), parts);
  }
  return traffic;
}

const std::string& PathOf(Method method) {
  static const auto& paths = *new std::array<std::string, kMethodCount>{
      "/softlookup.v1.SoftLookup/Lookup", "/softlookup.v1.SoftLookup/Append"};
  return paths[static_cast<std::size_t>(method)];
}

}  // namespace softlookup::loadtest
