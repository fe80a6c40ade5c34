#include "core/engine/put_records.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/storage/records.h"
#include "core/store/row_codec.h"
#include "core/store/store_loader.h"

namespace softlookup {
namespace {

std::string KeyOf(std::uint64_t store, RecordKind kind, std::uint64_t number = 0) {
  return EncodeKey({.store = store, .kind = kind, .number = number});
}

void PutRevision(std::uint64_t store, const Snapshot& snapshot, LogBatch& batch) {
  batch.Put(KeyOf(store, RecordKind::kRevision),
            EncodeRevision({.revision = snapshot.revision(), .row_count = snapshot.row_count()}));
}

LiveRowsRecord::Mask WordsOf(const RowMask& mask) {
  LiveRowsRecord::Mask words;
  std::copy_n(mask.words(), words.size(), words.begin());
  return words;
}

// Puts the masks of live rows of the blocks `indexes`, each of which must have a deleted row.
void PutLiveRows(std::uint64_t store, const Snapshot& snapshot,
                 const std::vector<std::int64_t>& indexes, LogBatch& batch) {
  const StoredBlocks& blocks = snapshot.stored_blocks();
  for (const std::int64_t block : indexes) {
    LiveRowsRecord record{.live = WordsOf(*blocks.LiveMaskOf(block))};
    if (const RowMask* kept = blocks.KeptMaskOf(block)) record.kept = WordsOf(*kept);
    batch.Put(KeyOf(store, RecordKind::kLiveRows, static_cast<std::uint64_t>(block)),
              EncodeLiveRows(record));
  }
}

// Puts the kBlockStart records of the blocks whose first row is at a position in [begin, end).
void PutBlockStarts(std::uint64_t store, const Snapshot& snapshot, std::uint64_t begin,
                    std::uint64_t end, LogBatch& batch) {
  const StoredBlocks& blocks = snapshot.stored_blocks();
  const std::uint64_t block_rows = static_cast<std::uint64_t>(blocks.block_rows());
  for (std::uint64_t block = (begin + block_rows - 1) / block_rows; block * block_rows < end;
       ++block) {
    const std::int64_t index = static_cast<std::int64_t>(block);
    BlockStartRecord record{.memories = snapshot.MemoriesBefore(index).Save()};
    if (index > 0) record.bounds = SaveBounds(blocks.BoundsOf(index - 1));
    batch.Put(KeyOf(store, RecordKind::kBlockStart, block), EncodeBlockStart(record));
  }
}

// Adds the tags of the rows at `positions` to `record`.
void AddTags(const Snapshot& snapshot, absl::Span<const std::uint64_t> positions,
             RowsRecord& record) {
  bool has_labels = false;
  for (const std::uint64_t position : positions) {
    Snapshot::TagsOfRow tags = snapshot.TagsOf(position);
    record.has_id.push_back(tags.id.has_value());
    if (tags.id) record.ids.push_back(*tags.id);
    has_labels = has_labels || !tags.labels.empty();
    record.row_labels.push_back(std::move(tags.labels));
  }
  if (record.ids.empty() || record.ids.size() == positions.size()) record.has_id.clear();
  if (!has_labels) record.row_labels.clear();
}

// Puts the rows at positions [begin, end), which no compacted block has.
void PutRows(std::uint64_t store, const Snapshot& snapshot, std::uint64_t begin, std::uint64_t end,
             LogBatch& batch) {
  const std::string components = EncodeComponents(snapshot.stored_blocks(), begin, end);
  RowsRecord record{.row_count = static_cast<std::uint32_t>(end - begin), .components = components};
  std::vector<std::uint64_t> positions(end - begin);
  std::iota(positions.begin(), positions.end(), begin);
  AddTags(snapshot, positions, record);
  batch.Put(KeyOf(store, RecordKind::kRows, begin), EncodeRows(record));
}

// Puts the rows of block `index`, which is compacted.
void PutKeptRows(std::uint64_t store, const Snapshot& snapshot, std::int64_t index,
                 LogBatch& batch) {
  const PositionedBlock rows = snapshot.stored_blocks().LiveRowsOf(index);
  const std::string components = EncodeKeptComponents(snapshot.stored_blocks(), index);
  RowsRecord record{.row_count = static_cast<std::uint32_t>(rows.view.row_count),
                    .components = components};
  std::vector<std::uint64_t> positions;
  for (std::int64_t row = 0; row < rows.view.row_count; ++row) {
    positions.push_back(rows.PositionOf(row));
  }
  AddTags(snapshot, positions, record);
  batch.Put(KeyOf(store, RecordKind::kRows, rows.first_position), EncodeRows(record));
}

}  // namespace

void PutName(std::uint64_t store, absl::string_view name, LogBatch& batch) {
  batch.Put(KeyOfName(store), EncodeName(name));
}

void PutNewStore(std::uint64_t store, const Snapshot& snapshot, absl::Time create_time,
                 LogBatch& batch) {
  PutName(store, snapshot.config().name, batch);
  PutConfig(store, snapshot, create_time, batch);
}

void PutConfig(std::uint64_t store, const Snapshot& snapshot, absl::Time create_time,
               LogBatch& batch) {
  batch.Put(KeyOf(store, RecordKind::kConfig),
            EncodeConfig({.config = snapshot.config(), .create_time = create_time}));
  PutRevision(store, snapshot, batch);
}

void PutAppend(std::uint64_t store, const AppendOutcome& outcome, const RowBatch& rows,
               const WriterState* writer, LogBatch& batch) {
  const Snapshot& snapshot = *outcome.snapshot;
  const std::uint64_t begin = outcome.first_position;
  const std::uint64_t end = begin + outcome.appended_count;
  if (begin < end) {
    PutBlockStarts(store, snapshot, begin, end, batch);
    const std::string components = EncodeComponents(snapshot.stored_blocks(), begin, end);
    RowsRecord record{.row_count = static_cast<std::uint32_t>(outcome.appended_count),
                      .components = components};
    for (std::uint64_t position = begin; position < end; ++position) {
      Snapshot::TagsOfRow tags = snapshot.TagsOf(position);
      if (!rows.ids.empty()) record.ids.push_back(*tags.id);
      if (!rows.row_labels.empty()) record.row_labels.push_back(std::move(tags.labels));
    }
    batch.Put(KeyOf(store, RecordKind::kRows, begin), EncodeRows(record));
  }
  PutLiveRows(store, snapshot, outcome.masked_blocks, batch);
  if (writer != nullptr) {
    batch.Put(
        EncodeKey(
            {.store = store, .kind = RecordKind::kWriter, .writer = std::string(rows.writer)}),
        EncodeWriter(
            {.last_sequence = writer->last_sequence, .last_position = writer->last_position}));
  }
  PutRevision(store, snapshot, batch);
}

void PutDeletion(std::uint64_t store, const DeleteOutcome& outcome, LogBatch& batch) {
  PutLiveRows(store, *outcome.snapshot, outcome.masked_blocks, batch);
  PutRevision(store, *outcome.snapshot, batch);
}

std::vector<RowSpan> SpansOf(std::uint64_t begin, std::uint64_t end, std::int64_t block_rows) {
  const auto rows_max = static_cast<std::uint64_t>(kBlocksPerSpan * block_rows);
  std::vector<RowSpan> spans;
  for (; begin < end; begin += rows_max) {
    spans.push_back({.first_position = begin, .row_count = std::min(rows_max, end - begin)});
  }
  return spans;
}

void PutCompaction(std::uint64_t store, const CompactOutcome& outcome, std::int64_t begin,
                   std::int64_t end, absl::Span<const RowSpan> spans, LogBatch& batch) {
  const Snapshot& snapshot = *outcome.snapshot;
  const StoredBlocks& blocks = snapshot.stored_blocks();
  const auto position_of = [&](std::int64_t block) {
    return static_cast<std::uint64_t>(block * blocks.block_rows());
  };
  const auto lost_rows = [&](std::int64_t block) {
    return std::ranges::binary_search(outcome.compacted_blocks, block);
  };
  SOFTLOOKUP_CHECK(!spans.empty() && spans.front().first_position <= position_of(begin) &&
                   spans.back().end() >= position_of(end))
      << "records without a row of blocks " << begin << " to " << end;
  for (const RowSpan& span : spans) {
    const auto block = static_cast<std::int64_t>(span.first_position) / blocks.block_rows();
    // The record of a block that was compacted before stays, unless the block lost rows again.
    if (blocks.IsCompacted(block) && !lost_rows(block)) continue;
    batch.Delete(KeyOf(store, RecordKind::kRows, span.first_position));
  }
  if (const std::uint64_t first = spans.front().first_position; first < position_of(begin)) {
    PutRows(store, snapshot, first, position_of(begin), batch);
  }
  for (std::int64_t block = begin; block < end; ++block) {
    if (lost_rows(block)) {
      PutKeptRows(store, snapshot, block, batch);
    } else if (!blocks.IsCompacted(block)) {
      PutRows(store, snapshot, position_of(block), position_of(block + 1), batch);
    }
  }
  for (const RowSpan& rest : SpansOf(position_of(end), spans.back().end(), blocks.block_rows())) {
    PutRows(store, snapshot, rest.first_position, rest.end(), batch);
  }
  PutLiveRows(store, snapshot, outcome.compacted_blocks, batch);
  PutRevision(store, snapshot, batch);
  batch.FreeDiskOf(KeyOf(store, RecordKind::kRows, spans.front().first_position),
                   KeyOf(store, RecordKind::kRows, spans.back().end()));
}

void DeleteRecords(std::uint64_t store, LogBatch& batch) {
  const KeyRange keys = KeysOfStore(store);
  batch.DeleteRange(keys.begin, keys.end);
  batch.Delete(KeyOfName(store));
}

void PutUnfinished(std::uint64_t store, LogBatch& batch) {
  batch.Put(KeyOfUnfinished(store), EncodeUnfinished());
}

void PutFinished(std::uint64_t store, const Snapshot& snapshot, absl::Time create_time,
                 LogBatch& batch) {
  PutNewStore(store, snapshot, create_time, batch);
  batch.Delete(KeyOfUnfinished(store));
}

void DeleteUnfinished(std::uint64_t store, LogBatch& batch) {
  DeleteRecords(store, batch);
  batch.Delete(KeyOfUnfinished(store));
}

}  // namespace softlookup
