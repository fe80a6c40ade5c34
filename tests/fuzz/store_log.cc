#include "tests/fuzz/store_log.h"

#include "core/storage/coding.h"
#include "tests/fuzz/require.h"

namespace softlookup::fuzz {

// Changes the log at once.
class MemoryLog::Batch final : public LogBatch {
 public:
  explicit Batch(MemoryLog& log) : log_(log) {}

  void Put(absl::string_view key, absl::string_view value) override {
    log_.records_[std::string(key)] = std::string(value);
  }
  void Delete(absl::string_view key) override { log_.records_.erase(std::string(key)); }
  void DeleteRange(absl::string_view begin, absl::string_view end) override {
    log_.records_.erase(log_.records_.lower_bound(begin), log_.records_.lower_bound(end));
  }
  void FreeDiskOf(absl::string_view, absl::string_view) override {}

 private:
  MemoryLog& log_;
};

MemoryLog MemoryLog::Parse(absl::string_view text) {
  MemoryLog log;
  while (text.size() >= 3) {
    Decoder decoder(text);
    const std::size_t key_size = decoder.Get<std::uint8_t>();
    const std::size_t value_size = decoder.Get<std::uint16_t>();
    text.remove_prefix(3);
    const absl::string_view key = text.substr(0, key_size);
    text.remove_prefix(key.size());
    const absl::string_view value = text.substr(0, value_size);
    text.remove_prefix(value.size());
    log.records_[std::string(key)] = std::string(value);
  }
  return log;
}

std::string MemoryLog::LogText() const {
  Encoder encoder;
  for (const auto& [key, value] : records_) {
    REQUIRE(key.size() <= 0xff && value.size() <= 0xffff);
    encoder.Put(static_cast<std::uint8_t>(key.size()));
    encoder.Put(static_cast<std::uint16_t>(value.size()));
    encoder.PutBytes(key);
    encoder.PutBytes(value);
  }
  return encoder.Take();
}

std::unique_ptr<LogBatch> MemoryLog::NewBatch() { return std::make_unique<Batch>(*this); }

absl::Status MemoryLog::Commit(LogBatch&, Sync) { return absl::OkStatus(); }

absl::Status MemoryLog::Scan(
    absl::string_view begin, absl::string_view end,
    absl::FunctionRef<absl::Status(absl::string_view, absl::string_view)> visit) const {
  for (auto record = records_.lower_bound(begin); record != records_.end(); ++record) {
    if (record->first >= end) break;
    if (absl::Status status = visit(record->first, record->second); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status MemoryLog::CopyTo(const std::string&) {
  return absl::UnimplementedError("a log in memory is not copied");
}

}  // namespace softlookup::fuzz
