#ifndef SOFTLOOKUP_SERVER_CLUSTER_SEED_WRITER_H_
#define SOFTLOOKUP_SERVER_CLUSTER_SEED_WRITER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/base/file_descriptor.h"
#include "server/cluster/peers/peers.pb.h"
#include "server/cluster/sha256_stream.h"

namespace softlookup::server {

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
  // A file that was there before.
  struct KeptFile {
    std::uint64_t size = 0;
    Sha256Stream sha256;  // Of its bytes.
  };
  // A file that has begun to come.
  struct IncomingFile {
    std::string path;
    FileDescriptor descriptor;
    std::uint64_t size_left = 0;  // Bytes that are still to come.
    Sha256Stream sha256;          // Of the bytes that are there.
  };

  explicit SeedWriter(const std::string& directory) : directory_(directory) {}

  absl::Status ReadKept(absl::FunctionRef<bool()> should_stop);
  absl::Status BeginFile(const cluster::v1::SeedFile& file);
  absl::Status AddChunk(absl::string_view chunk);
  absl::Status EndFile(const std::string& sha256);
  absl::Status EndCopy(std::uint64_t file_count);

  std::string directory_;
  absl::flat_hash_map<std::string, KeptFile> kept_;  // By name.
  std::optional<IncomingFile> file_;                 // The one that has begun and not ended.
  absl::flat_hash_set<std::string> names_;           // Of the files that have begun.
  bool is_complete_ = false;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_CLUSTER_SEED_WRITER_H_
