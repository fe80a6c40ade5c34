#ifndef SOFTLOOKUP_CORE_STORAGE_EMPTY_TABLES_H_
#define SOFTLOOKUP_CORE_STORAGE_EMPTY_TABLES_H_

#include <rocksdb/env.h>
#include <rocksdb/table_properties.h>

#include <memory>

namespace softlookup {

// Keeps RocksDB from ending the process when it cannot write a table that it does not need.
//
// A compaction that finds only deletions of ranges, and no record that they have not deleted, makes
// a table, puts nothing in it, writes it and removes it. If writing fails, for example because the
// disk is full, the table is not removed. RocksDB 7.8, which is that of Debian 12, then reads the
// table's smallest key for its statistics (CompactionJob::UpdateCompactionJobStats), although the
// table has none, and fails an assertion.
//
// So errors of writing a table that has nothing in it are hidden from RocksDB. That loses nothing,
// because RocksDB removes such a table as soon as it is written. What a table has in it is known
// from a TablePropertiesCollector, which sees all that is put into it. RocksDB makes a table, its
// collector and its file on one thread, which makes no other table meanwhile.

// Returns an Env with the files of `env`, for a database whose options have an EmptyTableWatch.
// Errors of writing its empty tables are hidden. `env` must outlive it.
std::unique_ptr<rocksdb::Env> HideErrorsOfEmptyTables(rocksdb::Env& env);

// For Options::table_properties_collector_factories. Thread-safe.
class EmptyTableWatch final : public rocksdb::TablePropertiesCollectorFactory {
 public:
  rocksdb::TablePropertiesCollector* CreateTablePropertiesCollector(Context context) override;
  const char* Name() const override { return "EmptyTableWatch"; }
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORAGE_EMPTY_TABLES_H_
