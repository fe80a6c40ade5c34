#include "core/store/writer_table.h"

#include "core/base/check.h"
#include "core/memory/heap_bytes.h"

namespace softlookup {

void WriterTable::Set(const std::string& writer, WriterState state) {
  CountName(writer);
  states_.Set(writer, state);
}

void WriterTable::SetCommitted(const std::string& writer, WriterState state) {
  CountName(writer);
  states_.SetCommitted(writer, state);
  committed_name_bytes_ = name_bytes_;
}

void WriterTable::Commit() {
  states_.Commit();
  committed_name_bytes_ = name_bytes_;
}

void WriterTable::RollbackTo(const Savepoint& savepoint) {
  // A commit since the savepoint would have emptied the list of changes.
  SOFTLOOKUP_CHECK(savepoint.change_count_ <= states_.change_count())
      << "the savepoint is older than the last commit";
  states_.RollbackTo(savepoint.change_count_);
  name_bytes_ = savepoint.name_bytes_;
}

void WriterTable::CountName(const std::string& writer) {
  if (states_.Find(writer) == nullptr) name_bytes_ += HeapBytes(writer);
}

}  // namespace softlookup
