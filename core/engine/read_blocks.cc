#include "core/engine/read_blocks.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/storage/records.h"
#include "core/store/row_codec.h"
#include "softlookup/engine.h"

namespace softlookup {
namespace {

// Gathers the rows of some blocks from kRows records, which come in the order of positions.
class BlockReader {
 public:
  BlockReader(const Snapshot& snapshot, std::int64_t begin, std::int64_t end)
      : snapshot_(snapshot), begin_(begin), next_(PositionOf(begin)), end_(PositionOf(end)) {
    for (std::int64_t index = begin; index < end; ++index) {
      StoreEditor::ReadBlock& block = read_.emplace_back();
      block.index = index;
      if (const RowMask* kept = blocks().KeptMaskOf(index)) {
        block.kept = std::make_shared<const RowMask>(*kept);
      }
    }
  }

  // Adds a record. Records that end before the blocks are left out.
  absl::Status Add(absl::string_view key, absl::string_view value) {
    SOFTLOOKUP_ASSIGN_OR_RETURN(const RecordKey parsed, ParseKey(key));
    const std::uint64_t first = parsed.number;
    SOFTLOOKUP_ASSIGN_OR_RETURN(const RowsRecord record,
                                ParseRows(value, blocks().shape().row_bytes()));
    const auto block = static_cast<std::int64_t>(first) / blocks().block_rows();
    if (blocks().IsCompacted(block)) return AddCompacted(block, first, record);
    const std::uint64_t last = first + record.row_count;
    if (last <= next_) return absl::OkStatus();
    if (first > next_) return Gone();
    for (std::uint64_t position = next_; position < std::min(last, end_);
         position = next_ = std::min(last, NextBlockAt(position))) {
      StoreEditor::ReadBlock& read = BlockAt(position);
      if (read.kept != nullptr) return Gone();
      PutRows(record, first, last, read);
    }
    return absl::OkStatus();
  }

  bool has_any() const { return next_ > PositionOf(begin_); }
  // Returns the blocks, if all their rows were added.
  absl::StatusOr<std::vector<StoreEditor::ReadBlock>> Take() {
    if (next_ < end_) return Gone();
    for (StoreEditor::ReadBlock& read : read_) {
      if (read.kept == nullptr) read.rows.panels = std::move(panels_[read.index - begin_]);
    }
    return std::move(read_);
  }

 private:
  const StoredBlocks& blocks() const { return snapshot_.stored_blocks(); }
  std::uint64_t PositionOf(std::int64_t block) const {
    return static_cast<std::uint64_t>(block * blocks().block_rows());
  }
  std::uint64_t NextBlockAt(std::uint64_t position) const {
    return PositionOf(static_cast<std::int64_t>(position) / blocks().block_rows() + 1);
  }
  StoreEditor::ReadBlock& BlockAt(std::uint64_t position) {
    return read_[static_cast<std::size_t>(
        static_cast<std::int64_t>(position) / blocks().block_rows() - begin_)];
  }

  absl::Status AddCompacted(std::int64_t block, std::uint64_t first, const RowsRecord& record) {
    if (first < next_ || first >= end_) return absl::OkStatus();
    StoreEditor::ReadBlock& read = BlockAt(first);
    const auto kept = static_cast<std::uint32_t>(read.kept->CountFirst(blocks().block_rows()));
    if (first != next_ || first != PositionOf(block) || record.row_count != kept) return Gone();
    read.rows.packed =
        DecodeKeptRows(record.components, blocks().shape(), blocks().block_rows(), *read.kept);
    next_ = PositionOf(block + 1);
    return absl::OkStatus();
  }

  void PutRows(const RowsRecord& record, std::uint64_t first, std::uint64_t last,
               const StoreEditor::ReadBlock& read) {
    panels_.resize(read_.size());
    std::shared_ptr<PanelBuffer>& panels = panels_[static_cast<std::size_t>(read.index - begin_)];
    if (panels == nullptr) {
      panels = std::make_shared<PanelBuffer>(blocks().shape(),
                                             blocks().block_rows() / kernels::kPanelRows);
      panels->UseLargePages();
    }
    DecodeRowsOfBlock(record.components, blocks().shape(), first, last, blocks().block_rows(),
                      read.index, *panels);
  }

  absl::Status Gone() const {
    return MakeError(reasons::kRowsCompacted,
                     absl::StrCat("The log of store \"", snapshot_.config().name,
                                  "\" does not have the rows from position ", next_,
                                  " on as of revision ", snapshot_.revision()),
                     {{"position", absl::StrCat(next_)}});
  }

  const Snapshot& snapshot_;
  const std::int64_t begin_;
  std::uint64_t next_;  // The rows from here on are still to be added.
  const std::uint64_t end_;
  std::vector<StoreEditor::ReadBlock> read_;
  std::vector<std::shared_ptr<PanelBuffer>> panels_;  // By block from begin_ on.
};

}  // namespace

absl::StatusOr<std::vector<StoreEditor::ReadBlock>> ReadBlocks(const CommitLog& log,
                                                               std::uint64_t store,
                                                               const Snapshot& snapshot,
                                                               std::int64_t begin, std::int64_t end,
                                                               const CancelToken& cancel) {
  const std::int64_t block_rows = snapshot.stored_blocks().block_rows();
  const auto key_at = [&](std::uint64_t position) {
    return EncodeKey({.store = store, .kind = RecordKind::kRows, .number = position});
  };
  const auto first = static_cast<std::uint64_t>(begin * block_rows);
  // The record with the first row may begin before that row, by fewer rows than an append has. Most
  // appends are small, so most blocks need no more than the first two of these.
  const std::array<std::uint64_t, 4> rows_before = {
      std::uint64_t{0}, static_cast<std::uint64_t>(block_rows),
      static_cast<std::uint64_t>(Limits().rows_per_append_max), first};
  for (const std::uint64_t before : rows_before) {
    BlockReader reader(snapshot, begin, end);
    const absl::Status status =
        log.Scan(key_at(first - std::min(before, first)),
                 key_at(static_cast<std::uint64_t>(end * block_rows)),
                 [&](absl::string_view key, absl::string_view value) -> absl::Status {
                   SOFTLOOKUP_RETURN_IF_ERROR(cancel.Check());
                   return reader.Add(key, value);
                 });
    if (status.ok() && reader.has_any()) return reader.Take();
    if (reader.has_any() || before >= first) return status.ok() ? reader.Take().status() : status;
  }
  return absl::InternalError("the last of the scans begins at position 0");
}

absl::StatusOr<std::shared_ptr<const Snapshot>> WithBlock(
    const CommitLog& log, std::uint64_t store, const std::shared_ptr<const Snapshot>& snapshot,
    std::int64_t index) {
  CancelToken cancel(absl::InfiniteFuture());
  SOFTLOOKUP_ASSIGN_OR_RETURN(std::vector<StoreEditor::ReadBlock> read,
                              ReadBlocks(log, store, *snapshot, index, index + 1, cancel));
  return snapshot->With(index, std::move(read[0].rows));
}

}  // namespace softlookup
