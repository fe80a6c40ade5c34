#ifndef SOFTLOOKUP_CORE_STORE_WRITER_TABLE_H_
#define SOFTLOOKUP_CORE_STORE_WRITER_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "core/store/rollback_map.h"

namespace softlookup {

// The last append of a writer.
struct WriterState {
  std::uint64_t last_sequence = 0;
  std::uint64_t last_position = 0;  // Of the writer's last row. Also 0 for a writer without rows.
};

// The writers of a store, by name, with the last append of each. Changes can be rolled back until
// they are committed. Not thread-safe.
class WriterTable {
 public:
  // A state of the table to roll back to.
  class Savepoint {
   private:
    friend class WriterTable;
    Savepoint(std::size_t change_count, std::int64_t name_bytes)
        : change_count_(change_count), name_bytes_(name_bytes) {}

    std::size_t change_count_;  // As RollbackMap counts changes.
    std::int64_t name_bytes_;
  };

  // Returns the number of writers.
  std::size_t size() const { return states_.size(); }
  // Returns the last append of `writer`, or null if the table does not have it. The pointer is
  // valid until the next change.
  const WriterState* Find(absl::string_view writer) const { return states_.Find(writer); }

  // Sets the last append of `writer`. Adds the writer if it is new.
  void Set(const std::string& writer, WriterState state);
  // As Set(), but for good, as if the change had been committed. There must be no changes since the
  // last commit.
  void SetCommitted(const std::string& writer, WriterState state);

  // Makes the changes so far final.
  void Commit();
  // Returns the state as of the last commit.
  Savepoint LastCommit() const { return {0, committed_name_bytes_}; }
  // Returns the state as of now.
  Savepoint MakeSavepoint() const { return {states_.change_count(), name_bytes_}; }
  // Undoes the changes since `savepoint` was made. There must have been no commit since then.
  void RollbackTo(const Savepoint& savepoint);

  // Returns the heap bytes of the table and of the writers' names. The list of changes that are not
  // committed does not count.
  std::int64_t bytes() const { return states_.bytes() + name_bytes_; }

 private:
  // Adds the bytes of the name `writer` to name_bytes_ if the writer is new.
  void CountName(const std::string& writer);

  RollbackMap<std::string, WriterState> states_;
  std::int64_t name_bytes_ = 0;            // Heap bytes of the names in states_.
  std::int64_t committed_name_bytes_ = 0;  // As of the last commit.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORE_WRITER_TABLE_H_
