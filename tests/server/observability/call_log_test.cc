#include "server/observability/call_log.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <sstream>
#include <string>

#include "core/base/error.h"
#include "server/observability/server_log.h"

namespace softlookup::server {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Reads the lines that the server log gets.
class CallLogTest : public ::testing::Test {
 protected:
  CallLogTest() {
    const auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(text_);
    const auto logger = std::make_shared<spdlog::logger>("test", sink);
    logger->set_formatter(MakeLineFormatter(LineFormat::kText));
    before_ = spdlog::default_logger();
    spdlog::set_default_logger(logger);
  }
  ~CallLogTest() override { spdlog::set_default_logger(before_); }

  std::string text() const { return text_.str(); }

  grpc::ServerContext context_;
  const CallInfo call_{.method = Method::kLookup, .context = context_};
  CallLog log_;

 private:
  std::ostringstream text_;
  std::shared_ptr<spdlog::logger> before_;
};

TEST_F(CallLogTest, LogsOnlyFailuresOfTheServer) {
  const absl::Duration duration = absl::Milliseconds(7);
  log_.LogFailure(call_, duration, absl::OkStatus());
  log_.LogFailure(call_, duration, MakeError(reasons::kQueueFull, "full"));
  log_.LogFailure(call_, duration, MakeError(reasons::kStoreNotFound, "gone"));
  EXPECT_THAT(text(), IsEmpty());
  log_.LogFailure(call_, duration, absl::InternalError("broken"));
  EXPECT_THAT(text(), HasSubstr("a call failed method=Lookup code=INTERNAL"));
  EXPECT_THAT(text(), HasSubstr("error=broken"));
}

TEST_F(CallLogTest, LogsWhatIsRefusedForLackOfMemory) {
  log_.LogFailure(call_, absl::Milliseconds(7), MakeError(reasons::kMemoryLimit, "no room"));
  EXPECT_THAT(text(), HasSubstr("a call was refused method=Lookup code=RESOURCE_EXHAUSTED"));
  EXPECT_THAT(text(), HasSubstr("reason=MEMORY_LIMIT"));
  EXPECT_THAT(text(), HasSubstr("error=\"no room\""));
}

TEST_F(CallLogTest, ASlowLookupHasItsStoreAndItsTimes) {
  const v1::LookupRequest request;
  LookupReport report;
  report.queue_wait = absl::Milliseconds(5);
  report.scanned_rows = 3;
  log_.LogSlowLookup(call_, absl::Milliseconds(7), absl::OkStatus(),
                     {.request = request, .store = "acme/users", .report = report});
  EXPECT_THAT(text(), HasSubstr("slow lookup method=Lookup code=OK"));
  EXPECT_THAT(text(), HasSubstr("store=acme/users"));
  EXPECT_THAT(text(), HasSubstr("scanned_rows=3"));
  EXPECT_THAT(text(), HasSubstr("queue_ms=5.0"));
}

}  // namespace
}  // namespace softlookup::server
