#ifndef SOFTLOOKUP_TESTS_FUZZ_STORE_LOG_H_
#define SOFTLOOKUP_TESTS_FUZZ_STORE_LOG_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/storage/commit_log.h"

namespace softlookup::fuzz {

// A log in memory, which is read and written by its records.
class MemoryLog final : public CommitLog {
 public:
  // The records of LogText(), or of any other bytes.
  static MemoryLog Parse(absl::string_view text);
  // Each: u8 size of the key, u16 size of the value, both cut to what is there, key, value.
  std::string LogText() const;

  std::unique_ptr<LogBatch> NewBatch() override;
  absl::Status Commit(LogBatch& batch, Sync sync) override;
  bool has_failed() const override { return false; }
  absl::Status Scan(
      absl::string_view begin, absl::string_view end,
      absl::FunctionRef<absl::Status(absl::string_view, absl::string_view)> visit) const override;
  void AllowTableCompaction() override {}
  std::string LastKeyInTables() const override { return ""; }
  std::vector<KeyRange> RangesInTables(absl::Span<const KeyRange>) const override { return {}; }
  absl::Status ReadTables(absl::Span<const KeyRange>) const override { return absl::OkStatus(); }
  void AwaitReclaimed() override {}
  std::uint64_t deleted_bytes() const override { return 0; }
  absl::Status VerifyChecksums() const override { return absl::OkStatus(); }
  absl::Status CopyTo(const std::string& directory) override;

 private:
  class Batch;

  std::map<std::string, std::string, std::less<>> records_;
};

}  // namespace softlookup::fuzz

#endif  // SOFTLOOKUP_TESTS_FUZZ_STORE_LOG_H_
