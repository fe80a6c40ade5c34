#ifndef SOFTLOOKUP_SERVER_CLUSTER_SEED_WRITER_H_
#define SOFTLOOKUP_SERVER_CLUSTER_SEED_WRITER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/base/file_descriptor.h"
#include "server/cluster/peers/peers.pb.h"
#include "server/cluster/sha256_stream.h"

namespace softlookup::server {

// A file that was there before a copy came.
struct KeptSeedFile {
  std::uint64_t size = 0;
  Sha256Stream sha256;  // Of its bytes.
};

// A file that has begun to come.
struct IncomingSeedFile {
  std::string path;
  FileDescriptor descriptor;
  std::uint64_t size_left = 0;  // Bytes that are still to come.
  Sha256Stream sha256;          // Of the bytes that are there.
};

// Writes the files of a Seed's responses to a directory, which nothing else changes meanwhile.
class SeedWriter {
 public:
  // Reads what is in `directory`, or creates it. Its parent must exist. CANCELLED within a second
  // after should_stop() returns true.
  static absl::StatusOr<SeedWriter> Open(const std::string& directory,
                                         absl::FunctionRef<bool()> should_stop);

  // Says in `request` what files are there. Leaves out those for which a message has no room.
  void AddKept(cluster::v1::SeedRequest& request) const;

  // Takes a response to that request. DATA_LOSS if the responses are not a whole copy.
  absl::Status Add(const cluster::v1::SeedResponse& response);
  // Must be called after the last response. Removes what is not of the copy.
  absl::Status Finish();

  // Call one of these after an error. Keep() leaves what has come to the next SeedWriter, and no
  // directory if that is nothing.
  void Keep();
  void Remove();

 private:
  explicit SeedWriter(const std::string& directory) : directory_(directory) {}

  absl::Status ReadKept(absl::FunctionRef<bool()> should_stop);
  absl::Status BeginFile(const cluster::v1::SeedFile& file);
  // Removes the kept files whose names come before `name`. They are not of the copy, whose files
  // come in the order of their names. If copies are cut again and again, their disk does not fill.
  absl::Status RemoveBefore(const std::string& name);
  absl::Status AddChunk(absl::string_view chunk);
  absl::Status EndFile(const std::string& sha256);
  absl::Status EndCopy(std::uint64_t file_count);

  std::string directory_;
  std::map<std::string, KeptSeedFile> kept_;  // By name. Those that may still be of the copy.
  std::optional<IncomingSeedFile> file_;      // The one that has begun and not ended.
  absl::flat_hash_set<std::string> names_;    // Of the files that have begun.
  bool is_complete_ = false;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_CLUSTER_SEED_WRITER_H_
