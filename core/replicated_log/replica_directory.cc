#include "core/replicated_log/replica_directory.h"

#include <cstdint>
#include <memory>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/replication/group_records.h"
#include "core/storage/coding.h"
#include "core/storage/records.h"

namespace softlookup {
namespace {

constexpr std::uint8_t kReplicaVersion = 1;

absl::Status Damaged(absl::string_view what) {
  return MakeError(reasons::kDataLoss, absl::StrCat("a record of ", what, " cannot be read"));
}

Encoder Begin() {
  Encoder encoder;
  encoder.Put(kReplicaVersion);
  return encoder;
}

// Returns whether there are records of stores.
absl::StatusOr<bool> HasStores(const CommitLog& log) {
  for (const KeyRange& keys : {KeysOfNames(), KeysOfUnfinished(), KeysOfAllStores()}) {
    bool is_empty = true;
    const absl::Status status =
        log.Scan(keys.begin, keys.end, [&](absl::string_view, absl::string_view) {
          is_empty = false;
          return absl::CancelledError("one record is enough");
        });
    if (!is_empty) return true;
    SOFTLOOKUP_RETURN_IF_ERROR(status);
  }
  return false;
}

// Returns the record of the replica that the directory belongs to; nullopt if there is none.
absl::StatusOr<std::optional<ReplicaRecord>> ReadReplica(const CommitLog& log) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::optional<std::string> value,
                              ReadRecord(log, KeyOfReplica()));
  if (!value.has_value()) return std::nullopt;
  SOFTLOOKUP_ASSIGN_OR_RETURN(ReplicaRecord record, ParseReplica(*value));
  return record;
}

absl::Status BelongsTo(const ReplicaName& name) {
  return MakeError(reasons::kDirectoryInUse,
                   absl::StrCat("the data directory belongs to node ", name.node, " of group ",
                                name.group, " of cluster ", name.cluster,
                                ", and only that node may write to it: start the server with "
                                "--cluster-etcd, --cluster ",
                                name.cluster, ", --group ", name.group, " and --node ", name.node));
}

}  // namespace

std::string EncodeReplica(const ReplicaRecord& record) {
  Encoder encoder = Begin();
  encoder.PutString(record.name.cluster);
  encoder.PutString(record.name.group);
  encoder.PutString(record.name.node);
  encoder.Put(static_cast<std::uint8_t>(record.has_joined));
  return encoder.Take();
}

absl::StatusOr<ReplicaRecord> ParseReplica(absl::string_view value) {
  Decoder decoder(value);
  const auto version = decoder.Get<std::uint8_t>();
  ReplicaRecord record;
  record.name.cluster = std::string(decoder.GetString());
  record.name.group = std::string(decoder.GetString());
  record.name.node = std::string(decoder.GetString());
  record.has_joined = decoder.Get<std::uint8_t>() != 0;
  if (version != kReplicaVersion || !decoder.at_end()) return Damaged("the replica");
  return record;
}

std::string EncodeAppliedEntry(const AppliedEntry& entry) {
  Encoder encoder = Begin();
  encoder.Put(entry.sequence);
  encoder.PutString(entry.digest);
  return encoder.Take();
}

absl::StatusOr<AppliedEntry> ParseAppliedEntry(absl::string_view value) {
  Decoder decoder(value);
  const auto version = decoder.Get<std::uint8_t>();
  AppliedEntry entry;
  entry.sequence = decoder.Get<std::uint64_t>();
  entry.digest = std::string(decoder.GetString());
  if (version != kReplicaVersion || !decoder.at_end()) return Damaged("the applied entry");
  return entry;
}

std::string EncodeEntry(const Entry& entry) {
  Encoder encoder = Begin();
  encoder.PutString(entry.previous);
  encoder.PutString(entry.digest);
  encoder.PutBytes(entry.bytes);
  return encoder.Take();
}

absl::StatusOr<Entry> ParseEntry(absl::string_view key, absl::string_view value) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const EntryId id, ParseEntryKey(key));
  Decoder decoder(value);
  const auto version = decoder.Get<std::uint8_t>();
  Entry entry{.epoch = id.epoch, .sequence = id.sequence};
  entry.previous = std::string(decoder.GetString());
  entry.digest = std::string(decoder.GetString());
  if (version != kReplicaVersion || !decoder.ok()) return Damaged("an entry");
  entry.bytes = std::string(decoder.rest());
  return entry;
}

absl::StatusOr<std::optional<std::string>> ReadRecord(const CommitLog& log,
                                                      const std::string& key) {
  std::optional<std::string> found;
  SOFTLOOKUP_RETURN_IF_ERROR(
      log.Scan(key, key + '\0', [&](absl::string_view, absl::string_view value) {
        found = std::string(value);
        return absl::OkStatus();
      }));
  return found;
}

absl::Status ReleaseDirectory(CommitLog& log) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::optional<ReplicaRecord> record, ReadReplica(log));
  if (!record.has_value()) return absl::OkStatus();
  if (record->has_joined) return BelongsTo(record->name);
  const std::unique_ptr<LogBatch> batch = log.NewBatch();
  batch->Put(FormatKey(), EncodeFormat());
  batch->Delete(KeyOfReplica());
  batch->Delete(KeyOfAppliedEntry());
  return log.Commit(*batch, Sync::kYes);
}

absl::StatusOr<ReplicaRecord> ClaimDirectory(const ReplicaName& name, absl::string_view nonce,
                                             CommitLog& log) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::optional<ReplicaRecord> before, ReadReplica(log));
  if (before.has_value() && before->name == name) return *before;
  if (before.has_value() && before->has_joined) return BelongsTo(before->name);
  SOFTLOOKUP_ASSIGN_OR_RETURN(const bool has_stores, HasStores(log));
  ReplicaRecord record{.name = name};
  const std::unique_ptr<LogBatch> batch = log.NewBatch();
  batch->Put(FormatKey(), EncodeFormatOfReplica());
  batch->Put(KeyOfReplica(), EncodeReplica(record));
  if (has_stores) {
    batch->Put(KeyOfAppliedEntry(),
               EncodeAppliedEntry({.sequence = 1, .digest = DigestOf("", /*epoch=*/0, nonce)}));
  }
  SOFTLOOKUP_RETURN_IF_ERROR(log.Commit(*batch, Sync::kYes));
  return record;
}

absl::Status AdoptDirectory(const ReplicaName& name, CommitLog& log) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::optional<ReplicaRecord> before, ReadReplica(log));
  if (!before.has_value() || before->name.cluster != name.cluster ||
      before->name.group != name.group) {
    return absl::FailedPreconditionError(
        absl::StrCat("the records are not of group ", name.group, " of cluster ", name.cluster));
  }
  return NoteJoined(name, log);
}

absl::Status NoteJoined(const ReplicaName& name, CommitLog& log) {
  const std::unique_ptr<LogBatch> batch = log.NewBatch();
  batch->MakesRoom();  // Stores can then be deleted.
  batch->Put(KeyOfReplica(), EncodeReplica({.name = name, .has_joined = true}));
  return log.Commit(*batch, Sync::kYes);
}

}  // namespace softlookup
