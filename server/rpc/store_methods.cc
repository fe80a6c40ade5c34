#include "server/rpc/store_methods.h"

#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "server/rpc/codec.h"
#include "server/rpc/message_bytes.h"
#include "server/rpc/store_codec.h"
#include "server/rpc/store_limits.h"

namespace softlookup::server {
namespace {

// Wire bytes of a string or submessage field whose content has `bytes` bytes: a tag of one byte,
// the length, the content.
std::size_t FieldBytes(std::size_t bytes) {
  return 1 + google::protobuf::io::CodedOutputStream::VarintSize64(bytes) + bytes;
}

// The common prefix of all names that match `pattern` and start with `prefix`. Nullopt if no name
// can do both.
std::optional<std::string> CommonPrefix(const StorePattern& pattern, const std::string& prefix) {
  if (absl::StartsWith(pattern.prefix(), prefix)) return pattern.prefix();
  if (!pattern.is_name() && absl::StartsWith(prefix, pattern.prefix())) return prefix;
  return std::nullopt;
}

// The first store, in the order of names, that comes after `last`, has a name that starts with
// `prefix`, and that the caller may read. Nullopt if there is none. Asks the engine for at most one
// store per grant, so that stores of other callers cost nothing.
absl::StatusOr<std::optional<StoreInfo>> NextStore(Engine& engine, const Caller& caller,
                                                   const std::string& prefix,
                                                   const std::string& last) {
  std::vector<std::string> prefixes;
  if (caller.identity == nullptr) {
    prefixes.push_back(prefix);
  } else {
    for (const Grant& grant : caller.identity->grants) {
      if (const auto common = CommonPrefix(grant.stores, prefix)) prefixes.push_back(*common);
    }
  }
  std::optional<StoreInfo> first;
  for (const std::string& readable : prefixes) {
    SOFTLOOKUP_ASSIGN_OR_RETURN(ListResult next, engine.ListStores(readable, last, 1));
    if (next.stores.empty()) continue;
    StoreInfo& store = next.stores.front();
    // The name of a grant for one store may be a prefix of other stores' names.
    if (!caller.May(Role::kRead, store.config.name)) continue;
    if (!first || store.config.name < first->config.name) first = std::move(store);
  }
  return first;
}

}  // namespace

absl::Status CreateStore(Engine& engine, Call& call, const v1::CreateStoreRequest& request,
                         v1::Store& response) {
  SOFTLOOKUP_RETURN_IF_ERROR(call.gate().Enter(request.store().name()));
  SOFTLOOKUP_ASSIGN_OR_RETURN(const StoreConfig config, DecodeStore(request.store()));
  SOFTLOOKUP_RETURN_IF_ERROR(CheckStoreBytes(config, engine.limits().message_bytes_max));
  SOFTLOOKUP_ASSIGN_OR_RETURN(
      const auto reservation,
      call.limiters().store_creations.Reserve(engine, call.gate().caller(), config.name));
  SOFTLOOKUP_ASSIGN_OR_RETURN(const StoreInfo info, engine.CreateStore(config));
  call.LogStore(StoreEvent::kCreated, {{"store", config.name}});
  response = EncodeStore(info);
  return absl::OkStatus();
}

absl::Status GetStore(Engine& engine, Call& call, const v1::GetStoreRequest& request,
                      v1::Store& response) {
  SOFTLOOKUP_RETURN_IF_ERROR(call.gate().Enter(request.name()));
  SOFTLOOKUP_ASSIGN_OR_RETURN(const StoreInfo info, engine.GetStore(request.name()));
  response = EncodeStore(info);
  return CheckAnswerBytes(response, engine.limits().message_bytes_max);
}

absl::Status ListStores(Engine& engine, Call& call, const v1::ListStoresRequest& request,
                        v1::ListStoresResponse& response) {
  if (request.page_size() < 0) {
    return InvalidOption("page_size", "must not be negative");
  }
  // A page token is the name of the last store of the page that returned it.
  std::string last = request.page_token();
  if (!last.empty() && !absl::StartsWith(last, request.prefix())) {
    return InvalidOption("page_token", "is not one that this prefix's listing returned");
  }
  const int page_size =
      request.page_size() == 0
          ? static_cast<int>(kListPageSizeDefault)
          : static_cast<int>(std::min<std::int64_t>(request.page_size(), kListPageSizeMax));
  const Caller caller = call.gate().caller();
  const auto bytes_max = static_cast<std::size_t>(engine.limits().message_bytes_max);
  std::size_t bytes = 0;  // Of the stores in the answer.
  while (response.stores_size() < page_size) {
    // Stores are fetched one by one, since one may have nearly as many bytes as a page.
    SOFTLOOKUP_ASSIGN_OR_RETURN(const std::optional<StoreInfo> next,
                                NextStore(engine, caller, request.prefix(), last));
    if (!next) return absl::OkStatus();
    v1::Store store = EncodeStore(*next);
    // If the page ends with this store, the store's name is the page's token.
    const std::size_t token_bytes = FieldBytes(store.name().size());
    if (FieldBytes(store.ByteSizeLong()) + token_bytes > bytes_max) {
      // The store was made when the limit was higher. Without its numbers it fits into a page, so
      // that the stores after it can be listed.
      LeaveNumbersOut(store);
    }
    bytes += FieldBytes(store.ByteSizeLong());
    if (bytes + token_bytes > bytes_max && response.stores_size() > 0) break;
    last = store.name();
    *response.add_stores() = std::move(store);
  }
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::optional<StoreInfo> more,
                              NextStore(engine, caller, request.prefix(), last));
  if (more) response.set_next_page_token(last);
  return absl::OkStatus();
}

absl::Status UpdateStore(Engine& engine, Call& call, const v1::UpdateStoreRequest& request,
                         v1::Store& response) {
  const std::string& name = request.store().name();
  SOFTLOOKUP_RETURN_IF_ERROR(call.gate().Enter(name));
  SOFTLOOKUP_ASSIGN_OR_RETURN(const StoreUpdate update, DecodeUpdate(request));
  if (update.projection || update.labels) {
    // If there is no such store, engine.UpdateStore() returns the error.
    if (absl::StatusOr<StoreInfo> info = engine.GetStore(name); info.ok()) {
      if (update.projection) info->config.projection = *update.projection;
      if (update.labels) info->config.labels = *update.labels;
      SOFTLOOKUP_RETURN_IF_ERROR(CheckStoreBytes(info->config, engine.limits().message_bytes_max));
    }
  }
  SOFTLOOKUP_ASSIGN_OR_RETURN(const StoreInfo info, engine.UpdateStore(name, update));
  response = EncodeStore(info);
  return absl::OkStatus();
}

absl::Status RenameStore(Engine& engine, Call& call, const v1::RenameStoreRequest& request,
                         v1::RenameStoreResponse& response) {
  SOFTLOOKUP_RETURN_IF_ERROR(call.gate().EnterRename(request.store(), request.new_name()));
  const StoreRename rename{
      .name = request.store(), .new_name = request.new_name(), .replace = request.replace()};
  if (rename.new_name.size() > rename.name.size()) {
    // If there is no such store, engine.RenameStore() returns the error.
    if (absl::StatusOr<StoreInfo> info = engine.GetStore(rename.name); info.ok()) {
      info->config.name = rename.new_name;
      SOFTLOOKUP_RETURN_IF_ERROR(CheckStoreBytes(info->config, engine.limits().message_bytes_max));
    }
  }
  const auto reservation = call.limiters().store_creations.ReserveNewName(rename.new_name);
  SOFTLOOKUP_ASSIGN_OR_RETURN(const StoreRenamed renamed, engine.RenameStore(rename));
  nlohmann::ordered_json fields = {{"store", rename.name}, {"new_name", rename.new_name}};
  if (renamed.replaced) {
    call.auditor().NoteReplacement();
    fields["replaced_rows"] = renamed.replaced->row_count;
  }
  call.LogStore(StoreEvent::kRenamed, std::move(fields));
  EncodeStoreRenamed(renamed, response);
  return absl::OkStatus();
}

absl::Status DeleteStore(Engine& engine, Call& call, const v1::DeleteStoreRequest& request,
                         v1::DeleteStoreResponse& response) {
  SOFTLOOKUP_RETURN_IF_ERROR(call.gate().Enter(request.name()));
  SOFTLOOKUP_RETURN_IF_ERROR(engine.DeleteStore(request.name()));
  call.LogStore(StoreEvent::kDeleted, {{"store", request.name()}});
  return absl::OkStatus();
}

absl::Status DeleteRows(Engine& engine, Call& call, const v1::DeleteRowsRequest& request,
                        v1::DeleteRowsResponse& response) {
  SOFTLOOKUP_RETURN_IF_ERROR(call.gate().Enter(request.store()));
  SOFTLOOKUP_ASSIGN_OR_RETURN(const RowFilter filter, DecodeFilter(request.filter()));
  SOFTLOOKUP_ASSIGN_OR_RETURN(const DeleteRowsResult result,
                              engine.DeleteRows(request.store(), filter));
  response.set_deleted_count(result.deleted_count);
  response.set_revision(result.revision);
  call.auditor().CountChange(result.deleted_count);
  return absl::OkStatus();
}

absl::Status GetWriter(Engine& engine, Call& call, const v1::GetWriterRequest& request,
                       v1::Writer& response) {
  SOFTLOOKUP_RETURN_IF_ERROR(call.gate().Enter(request.store()));
  SOFTLOOKUP_ASSIGN_OR_RETURN(const WriterInfo writer,
                              engine.GetWriter(request.store(), request.writer()));
  response.set_writer(request.writer());
  response.set_last_sequence(writer.last_sequence);
  response.set_last_position(writer.last_position);
  return absl::OkStatus();
}

absl::Status GetMemory(Engine& engine, Call& call, const v1::GetMemoryRequest& request,
                       v1::Memory& response) {
  SOFTLOOKUP_RETURN_IF_ERROR(call.gate().Enter(request.store()));
  SOFTLOOKUP_ASSIGN_OR_RETURN(
      const MemoryState memory,
      engine.GetMemory(request.store(), request.name(),
                       request.has_begin() ? std::optional(request.begin()) : std::nullopt,
                       request.has_end() ? std::optional(request.end()) : std::nullopt));
  EncodeMemory(memory, response);
  return CheckAnswerBytes(response, engine.limits().message_bytes_max);
}

}  // namespace softlookup::server
