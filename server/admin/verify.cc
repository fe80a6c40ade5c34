#include "server/admin/verify.h"

#include "absl/status/status.h"
#include "server/admin/data_directory.h"
#include "softlookup/engine.h"

namespace softlookup::server {
namespace {

class Report final : public LoadObserver {
 public:
  explicit Report(std::ostream& out) : out_(out) {}
  void OnStore(const StoreInfo& info) override {
    ++whole_count_;
    out_ << "whole: store \"" << info.config.name << "\", " << info.row_count
         << (info.row_count == 1 ? " row" : " rows") << ", revision " << info.revision << "\n";
  }
  void OnDamage(const absl::Status& damage) override {
    out_ << "DAMAGED: " << damage.message() << "\n";
    ++damaged_count_;
  }
  int damaged_count() const { return damaged_count_; }
  bool is_empty() const { return whole_count_ == 0 && damaged_count_ == 0; }

 private:
  std::ostream& out_;
  int whole_count_ = 0;
  int damaged_count_ = 0;
};

}  // namespace

bool VerifyDataDirectory(const std::string& directory, std::ostream& out) {
  Report report(out);
  absl::Status status = InspectDataDirectory(directory, /*own_paths=*/{}).status();
  if (status.ok()) status = Engine::Verify(directory, report);
  // Earlier versions could be started on a directory of backups, and made a data directory of it.
  if (status.ok() && report.is_empty()) status = CheckHasNoBackups(directory);
  if (status.ok()) {
    out << directory << " is whole\n";
  } else if (report.damaged_count() == 0) {
    out << status.message() << "\n";
  }
  return status.ok();
}

}  // namespace softlookup::server
