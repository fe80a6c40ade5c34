#include "tests/faults/group_faults/power_cut/power_cut.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace softlookup::testing {
namespace {

namespace fs = std::filesystem;

// Where files are kept that others have replaced.
std::string KeptOf(const std::string& directory) { return directory + ".replaced"; }

std::int64_t Number(const std::string& text) {
  std::int64_t number = 0;
  EXPECT_TRUE(absl::SimpleAtoi(text, &number)) << text;
  return number;
}

std::int64_t InodeOf(const fs::path& path) {
  struct stat status = {};
  return lstat(path.c_str(), &status) == 0 ? static_cast<std::int64_t>(status.st_ino) : -1;
}

// Makes `path` what it is once the directory `from` is `to`.
void Follow(std::string& path, const std::string& from, const std::string& to) {
  if (absl::StartsWith(path, from + "/")) path = to + path.substr(from.size());
}

// A change of names that is not on the disk for sure. Its directories have the names that they have
// after all changes that were not undone.
struct NameChange {
  std::int64_t offset = 0;  // In the journal.
  std::string path;
  std::int64_t inode = -1;  // Of a file that was created.
  std::string old_path;     // Of a file or directory that was renamed.
  std::string kept;

  void Undo() const {
    std::error_code ignored;
    if (old_path.empty()) {
      // The name may be another file's by now.
      if (InodeOf(path) == inode) fs::remove(path, ignored);
      return;
    }
    fs::rename(path, old_path, ignored);
    if (kept != "-") fs::rename(kept, path, ignored);
  }
};

// What the lines of a journal come to.
struct Journal {
  explicit Journal(const std::string& path) {
    std::ifstream file(path);
    std::int64_t offset = 0;
    for (std::string line; std::getline(file, line);) {
      const std::vector<std::string> fields = absl::StrSplit(line, '\t');
      Add(fields, offset);
      offset += static_cast<std::int64_t>(line.size()) + 1;
    }
  }

  void Add(const std::vector<std::string>& fields, std::int64_t offset) {
    if (fields[0] == "created") {
      synced[Number(fields.at(1))] = 0;
      changes.push_back({.offset = offset, .path = fields.at(2), .inode = Number(fields[1])});
    } else if (fields[0] == "emptied") {
      synced[Number(fields.at(1))] = 0;
    } else if (fields[0] == "synced") {
      const auto known = synced.find(Number(fields.at(1)));
      // A file without a line that it was created is on the disk.
      if (known != synced.end()) known->second = std::max(known->second, Number(fields.at(2)));
    } else if (fields[0] == "renamed") {
      DirectoryIsNow(fields.at(2), fields.at(1));
      // That of a file that could not be kept cannot be undone.
      if (fields.at(3) == "!") return;
      changes.push_back(
          {.offset = offset, .path = fields[2], .old_path = fields[1], .kept = fields[3]});
    } else if (fields[0] == "synced-names") {
      const std::int64_t begin = Number(fields.at(1));
      std::erase_if(changes, [&](const NameChange& change) {
        return change.offset < begin && fs::path(change.path).parent_path() == fields.at(2);
      });
    } else {
      ADD_FAILURE() << "a line of the journal begins with " << fields[0];
    }
  }

  void DirectoryIsNow(const std::string& path, const std::string& old_path) {
    for (NameChange& change : changes) {
      Follow(change.path, old_path, path);
      Follow(change.old_path, old_path, path);
    }
  }

  // Undoes the last change that is not on the disk for sure.
  void UndoLast() {
    const NameChange last = std::move(changes.back());
    changes.pop_back();
    last.Undo();
    if (!last.old_path.empty()) DirectoryIsNow(last.old_path, last.path);
  }

  std::vector<NameChange> changes;              // Those not on the disk for sure, in order.
  std::map<std::int64_t, std::int64_t> synced;  // Bytes by inode, of files that were created.
};

// Draws how much is left of what can be lost: often all or nothing.
std::int64_t DrawLeft(std::int64_t count, Draw& draw) {
  switch (draw.Int(0, 2)) {
    case 0:
      return 0;
    case 1:
      return count;
    default:
      return draw.Int(0, count);
  }
}

}  // namespace

std::vector<std::string> PowerCut::Prefix(const std::string& directory) const {
  fs::create_directories(KeptOf(directory));
  return {"/usr/bin/env", absl::StrCat("LD_PRELOAD=", SOFTLOOKUP_SYNC_JOURNAL_LIBRARY),
          absl::StrCat("SYNC_JOURNAL=", journal()), absl::StrCat("SYNC_JOURNAL_OF=", directory),
          absl::StrCat("SYNC_JOURNAL_KEEP=", KeptOf(directory))};
}

PowerCut::Taken PowerCut::Cut(const std::string& directory, Draw& draw) const {
  Taken taken;
  Journal journal(this->journal());
  const auto count = static_cast<std::int64_t>(journal.changes.size());
  for (std::int64_t left = DrawLeft(count, draw); count - taken.names > left; ++taken.names) {
    journal.UndoLast();
  }
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file()) continue;
    const auto known = journal.synced.find(InodeOf(entry.path()));
    if (known == journal.synced.end()) continue;
    const auto size = static_cast<std::int64_t>(entry.file_size());
    const std::int64_t unsynced = std::max<std::int64_t>(size - known->second, 0);
    const std::int64_t lost = unsynced - DrawLeft(unsynced, draw);
    if (lost > 0) fs::resize_file(entry.path(), size - lost);
    taken.bytes += lost;
  }
  Forget(directory);
  return taken;
}

void PowerCut::Forget(const std::string& directory) const {
  std::error_code ignored;
  fs::remove(journal(), ignored);
  fs::remove_all(KeptOf(directory), ignored);
}

std::int64_t CutNewestLog(const std::string& directory, std::int64_t bytes) {
  fs::path newest;
  for (const auto& entry : fs::directory_iterator(directory)) {
    // RocksDB pads the number of a log to six digits. A longer name is a larger number.
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() != ".log") continue;
    const std::string before = newest.filename().string();
    if (std::pair(name.size(), name) > std::pair(before.size(), before)) newest = entry.path();
  }
  if (newest.empty()) return 0;
  const auto size = static_cast<std::int64_t>(fs::file_size(newest));
  const std::int64_t lost = std::min(size, bytes);
  fs::resize_file(newest, size - lost);
  return lost;
}

}  // namespace softlookup::testing
