#include "server/router/routes.h"

#include "server/router/wire_fields.h"

namespace softlookup::server {

RoutedTo RoutedToOf(Method method) {
  switch (method) {
    case Method::kHealthCheck:
    case Method::kHealthWatch:
    case Method::kReflection:
    case Method::kBeginLookup:  // No client can call the next.
    case Method::kAnswerPart:
    case Method::kAnswerFirstPart:
    case Method::kSumRows:
      return RoutedTo::kRouter;
    case Method::kLookup:
    case Method::kAttend:
      return RoutedTo::kReplica;
    case Method::kStreamLookup:
      return RoutedTo::kLookupStream;
    case Method::kStreamAppend:
    case Method::kReadRows:
    case Method::kWatchMemory:
      return RoutedTo::kStream;
    case Method::kListStores:
      return RoutedTo::kAllGroups;
    case Method::kCreateBackup:
    case Method::kListBackups:
    case Method::kGetGroup:
    case Method::kAddReplica:
    case Method::kRemoveReplica:
    case Method::kMovePrimary:
      return RoutedTo::kOnlyGroup;
    case Method::kCreateStore:
    case Method::kGetStore:
    case Method::kUpdateStore:
    case Method::kRenameStore:
    case Method::kCompactStore:
    case Method::kDeleteStore:
    case Method::kAppend:
    case Method::kDeleteRows:
    case Method::kGetMemory:
    case Method::kGetWriter:
    case Method::kRestoreStore:
    case Method::kSplitStore:
    case Method::kMoveRange:
    case Method::kGetRanges:
      return RoutedTo::kPrimary;
  }
  return RoutedTo::kRouter;
}

// The numbers below are those of the fields in proto/softlookup/.

std::string StoreOf(Method method, grpc::ByteBuffer& request) {
  switch (method) {
    case Method::kCreateStore:
    case Method::kUpdateStore:
      return TextField(request, {1, 1});
    case Method::kRestoreStore: {
      // The name that the store gets decides where it will be.
      const std::string new_name = TextField(request, {3});
      return new_name.empty() ? TextField(request, {2}) : new_name;
    }
    case Method::kAttend:
    case Method::kListStores:
      return "";
    default:
      return RoutedToOf(method) == RoutedTo::kOnlyGroup ? "" : TextField(request, {1});
  }
}

Repeat RepeatOf(Method method, grpc::ByteBuffer& request) {
  if (!SpecOf(method).makes_changes) return Repeat::kAllowed;
  if (method != Method::kAppend) return Repeat::kNever;
  // The store's writer remembers its last sequence.
  const bool is_once = !TextField(request, {8}).empty() && NumberField(request, {9}) != 0;
  return is_once ? Repeat::kAllowed : Repeat::kNever;
}

void NoteAnswer(Method method, const std::string& store, const std::string& new_name,
                grpc::ByteBuffer& response, SeenRevisions& revisions) {
  switch (method) {
    case Method::kCreateStore:
    case Method::kGetStore:
    case Method::kUpdateStore:
      return revisions.Note(store, NumberField(response, {11}));
    case Method::kAppend:
    case Method::kStreamAppend:
      return revisions.Note(store, NumberField(response, {4}));
    case Method::kReadRows:
    case Method::kDeleteRows:
    case Method::kSplitStore:
    case Method::kMoveRange:
    case Method::kGetRanges:
      return revisions.Note(store, NumberField(response, {2}));
    case Method::kGetMemory:
    case Method::kWatchMemory:
      return revisions.Note(store, NumberField(response, {7}));
    case Method::kCompactStore:
      return revisions.Note(store, NumberField(response, {1, 11}));
    case Method::kDeleteStore:
    case Method::kRestoreStore:
      return revisions.Replace(store);
    case Method::kRenameStore:
      revisions.Replace(store);
      return revisions.Replace(new_name);
    default:
      return;
  }
}

std::optional<std::uint64_t> ChangedRows(Method method, grpc::ByteBuffer& response) {
  switch (method) {
    case Method::kAppend:
    case Method::kStreamAppend:
      return NumberField(response, {2});
    case Method::kDeleteRows:
      return NumberField(response, {1});
    case Method::kCompactStore:
      return NumberField(response, {2});
    case Method::kRestoreStore:
      return NumberField(response, {1, 12});
    default:
      return std::nullopt;
  }
}

}  // namespace softlookup::server
