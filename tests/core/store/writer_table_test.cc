#include "core/store/writer_table.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "core/memory/heap_bytes.h"

namespace softlookup {
namespace {

// Returns the last sequence of `writer`, or 0 if the table does not have the writer.
std::uint64_t SequenceOf(const WriterTable& table, const std::string& writer) {
  const WriterState* const state = table.Find(writer);
  return state == nullptr ? 0 : state->last_sequence;
}

TEST(WriterTableTest, AWriterHasTheStateThatWasSetLast) {
  WriterTable table;
  EXPECT_EQ(table.Find("a"), nullptr);
  table.Set("a", {.last_sequence = 1, .last_position = 10});
  table.Set("b", {.last_sequence = 2});
  table.Set("a", {.last_sequence = 3, .last_position = 30});
  EXPECT_EQ(table.size(), 2u);
  EXPECT_EQ(SequenceOf(table, "a"), 3u);
  EXPECT_EQ(table.Find("a")->last_position, 30u);
  EXPECT_EQ(SequenceOf(table, "b"), 2u);
}

TEST(WriterTableTest, ARollbackUndoesWhatWasSetSinceItsSavepoint) {
  WriterTable table;
  table.Set("a", {.last_sequence = 1});
  table.Commit();
  table.Set("a", {.last_sequence = 2});
  table.Set("b", {.last_sequence = 3});
  const WriterTable::Savepoint savepoint = table.MakeSavepoint();
  table.Set("a", {.last_sequence = 4});
  table.Set("c", {.last_sequence = 5});
  table.RollbackTo(savepoint);
  EXPECT_EQ(SequenceOf(table, "a"), 2u);
  EXPECT_EQ(SequenceOf(table, "b"), 3u);
  EXPECT_EQ(SequenceOf(table, "c"), 0u);
  table.RollbackTo(table.LastCommit());
  EXPECT_EQ(SequenceOf(table, "a"), 1u);
  EXPECT_EQ(SequenceOf(table, "b"), 0u);
  EXPECT_EQ(table.size(), 1u);
}

TEST(WriterTableTest, EveryNameCountsOnceAndNotAfterARollback) {
  // Too long for the inside of a std::string. Tables of short names take as much without the names.
  const std::string long_names[] = {std::string(100, 'a'), std::string(100, 'b')};
  const std::string short_names[] = {"a", "b"};
  const std::int64_t name_bytes = HeapBytes(long_names[0]);
  ASSERT_GE(name_bytes, 100);
  WriterTable table, others;
  const auto set = [&](int writer) {
    table.Set(long_names[writer], {.last_sequence = 1});
    others.Set(short_names[writer], {.last_sequence = 1});
  };
  EXPECT_EQ(table.bytes(), 0);
  set(0);
  EXPECT_GT(others.bytes(), 0);
  EXPECT_EQ(table.bytes(), others.bytes() + name_bytes);
  set(0);
  EXPECT_EQ(table.bytes(), others.bytes() + name_bytes);
  table.Commit();
  others.Commit();
  const WriterTable::Savepoint savepoint = table.MakeSavepoint(), other = others.MakeSavepoint();
  set(1);
  EXPECT_EQ(table.bytes(), others.bytes() + 2 * name_bytes);
  table.RollbackTo(savepoint);
  others.RollbackTo(other);
  EXPECT_EQ(table.bytes(), others.bytes() + name_bytes);
  set(1);
  table.RollbackTo(table.LastCommit());
  others.RollbackTo(others.LastCommit());
  EXPECT_EQ(table.bytes(), others.bytes() + name_bytes);
}

TEST(WriterTableTest, WhatIsSetAsCommittedCountsTheSameAndStays) {
  const std::string name(100, 'a');
  WriterTable set, loaded;
  set.Set(name, {.last_sequence = 1});
  for (int i = 0; i < 2; ++i) loaded.SetCommitted(name, {.last_sequence = 1});
  EXPECT_EQ(loaded.bytes(), set.bytes());
  loaded.RollbackTo(loaded.LastCommit());
  EXPECT_EQ(loaded.bytes(), set.bytes());
  loaded.Set("b", {.last_sequence = 2});
  loaded.RollbackTo(loaded.LastCommit());
  EXPECT_EQ(SequenceOf(loaded, name), 1u);
  EXPECT_EQ(SequenceOf(loaded, "b"), 0u);
}

TEST(WriterTableDeathTest, ASavepointOfAWriterEndsWithTheNextCommit) {
  WriterTable table;
  table.Set("a", {.last_sequence = 1});
  const WriterTable::Savepoint savepoint = table.MakeSavepoint();
  table.Commit();
  EXPECT_DEATH(table.RollbackTo(savepoint), "older than the last commit");
}

}  // namespace
}  // namespace softlookup
