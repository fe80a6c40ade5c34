#ifndef SOFTLOOKUP_SERVER_CLUSTER_SEED_COPY_H_
#define SOFTLOOKUP_SERVER_CLUSTER_SEED_COPY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace softlookup::server {

// Creates the directory in which SeedCopy objects have theirs, if it is missing, and removes the
// copies that an earlier process has left in it.
absl::Status PrepareSeedDirectory(const std::string& scratch_directory);

// A name for a directory in `scratch_directory` that no other copy has. The directory and what is
// in it are removed at the end.
class SeedCopy {
 public:
  explicit SeedCopy(const std::string& scratch_directory);
  ~SeedCopy();
  SeedCopy(const SeedCopy&) = delete;
  SeedCopy& operator=(const SeedCopy&) = delete;

  const std::string& directory() const { return directory_; }
  // Returns the names of the files in the directory, in order. INTERNAL if it has anything else.
  absl::StatusOr<std::vector<std::string>> FileNames() const;
  absl::StatusOr<std::uint64_t> SizeOf(const std::string& name) const;
  // Calls visit(chunk) for the bytes [begin, end) of the file, in pieces of at most
  // kPeerChunkBytesMax. Stops at the first error that visit() returns, and returns it. DATA_LOSS if
  // the file is shorter.
  absl::Status ReadFile(const std::string& name, std::uint64_t begin, std::uint64_t end,
                        absl::FunctionRef<absl::Status(absl::string_view)> visit) const;

 private:
  const std::string directory_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_CLUSTER_SEED_COPY_H_
