#include "server/observability/engine_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "core/base/error.h"
#include "server/observability/server_log.h"

namespace softlookup::server {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;

// Reads the lines that the server log gets.
class EngineLogTest : public ::testing::Test {
 protected:
  explicit EngineLogTest(LineFormat format = LineFormat::kText) {
    const auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(text_);
    const auto logger = std::make_shared<spdlog::logger>("test", sink);
    logger->set_formatter(MakeLineFormatter(format));
    before_ = spdlog::default_logger();
    spdlog::set_default_logger(logger);
  }
  ~EngineLogTest() override { spdlog::set_default_logger(before_); }

  std::vector<std::string> Lines() const {
    return absl::StrSplit(text_.str(), '\n', absl::SkipEmpty());
  }

  std::optional<EngineLog> log_{std::in_place};

 private:
  std::ostringstream text_;
  std::shared_ptr<spdlog::logger> before_;
};

TEST_F(EngineLogTest, EachEventOfAStoreHasALine) {
  log_->Write(StoreEvent::kCreated, {{"store", "a/b"}});
  log_->Write(StoreEvent::kRenamed, {{"store", "a/b"}, {"new_name", "c"}});
  log_->Write(StoreEvent::kDeleted, {{"store", "c"}});
  log_->Write(StoreEvent::kNotRestored, {{"store", "d"}, {"error", "torn\nfile"}});
  EXPECT_THAT(Lines(), ElementsAre(EndsWith(" info store created store=a/b"),
                                   EndsWith(" info store renamed store=a/b new_name=c"),
                                   EndsWith(" info store deleted store=c"),
                                   EndsWith(" warning store not restored store=d "
                                            "error=\"torn\\nfile\"")));
}

TEST_F(EngineLogTest, TheEngineReportsItsOwnCompactionsAndTheStateOfItsLog) {
  log_->OnAutoCompactionBegin("s");
  log_->OnAutoCompactionEnd("s", absl::OkStatus(), 7);
  log_->OnAutoCompactionEnd("s", MakeError(reasons::kStorageFailed, "full"), 0);
  log_->OnWritesRefused(MakeError(reasons::kStorageFailed, "full"));
  log_->OnWritesTaken();
  log_->OnRowsNotLoaded("s", MakeError(reasons::kMemoryLimit, "full"));
  EXPECT_THAT(Lines(),
              ElementsAre(EndsWith(" info compaction begun store=s"),
                          EndsWith(" info compaction ended store=s dropped_rows=7 code=OK"),
                          EndsWith(" info compaction ended store=s dropped_rows=0 code=UNAVAILABLE "
                                   "error=full"),
                          EndsWith(" warning writes are refused reason=STORAGE_FAILED error=full"),
                          ::testing::HasSubstr(" info writes are taken again"),
                          EndsWith(" warning rows not loaded store=s error=full")));
}

class JsonEngineLogTest : public EngineLogTest {
 protected:
  JsonEngineLogTest() : EngineLogTest(LineFormat::kJson) {}
};

TEST_F(JsonEngineLogTest, ManyEventsDoNotFloodTheLogAndHideNoOthers) {
  constexpr int kCreated = 500;
  for (int i = 0; i < kCreated; ++i) log_->Write(StoreEvent::kCreated, {{"store", "s"}});
  log_->Write(StoreEvent::kDeleted, {{"store", "s"}});
  log_.reset();
  int created = 0, deleted = 0, left_out = 0;
  for (const std::string& text : Lines()) {
    const nlohmann::json line = nlohmann::json::parse(text);
    created += line["message"] == "store created";
    deleted += line["message"] == "store deleted";
    left_out += line.value("left_out", 0);
  }
  EXPECT_GE(created, 10);
  EXPECT_EQ(created + left_out, kCreated);
  EXPECT_EQ(deleted, 1);
}

}  // namespace
}  // namespace softlookup::server
