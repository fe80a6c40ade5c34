#ifndef SOFTLOOKUP_TESTS_FAULTS_GROUP_FAULTS_POWER_CUT_POWER_CUT_H_
#define SOFTLOOKUP_TESTS_FAULTS_GROUP_FAULTS_POWER_CUT_POWER_CUT_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/testing/random.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {

// Knows what of a directory is on the disk for sure, and what a power cut could take. The processes
// that use the directory run with a library that tells. What anybody else writes there counts as on
// the disk. Used on one thread.
class PowerCut {
 public:
  // What a command begins with that runs the program that follows with the library. The program
  // must call `directory` by this path, which has no symbolic links.
  std::vector<std::string> Prefix(const std::string& directory) const;

  // What Cut() has taken.
  struct Taken {
    int names = 0;           // Files that are new, or have a new name.
    std::int64_t bytes = 0;  // Of ends of files.
  };
  // Takes some of what is not on the disk for sure: the last changes of names, and ends of files.
  // What is left then counts as on the disk. No process uses the directory.
  Taken Cut(const std::string& directory, Draw& draw) const;
  // All that is in the directory counts as on the disk from now on.
  void Forget(const std::string& directory) const;

 private:
  std::string journal() const { return journal_directory_.path() + "/journal"; }

  const TemporaryDirectory journal_directory_;  // Not on the directory's disk, which may be full.
};

// Takes up to `bytes` off the end of the newest write-ahead log of RocksDB in `directory`. Returns
// how many.
std::int64_t CutNewestLog(const std::string& directory, std::int64_t bytes);

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_FAULTS_GROUP_FAULTS_POWER_CUT_POWER_CUT_H_
