#include "server/observability/server_log.h"

#include <grpc/support/log.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/observability/line_limiter.h"

namespace softlookup::server {
namespace {

using nlohmann::ordered_json;

// The fields of the message that this thread is logging. Null: none. The formatter finds them here,
// because spdlog passes it only text.
thread_local const ordered_json* fields_of_message = nullptr;

class LineFormatter final : public spdlog::formatter {
 public:
  explicit LineFormatter(LineFormat format) : format_(format) {}

  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& line) override {
    const std::string time = LineTime(absl::FromChrono(message.time));
    const auto level_name = spdlog::level::to_string_view(message.level);
    const std::string level(level_name.data(), level_name.size());
    const std::string text(message.payload.data(), message.payload.size());
    std::string result;
    if (format_ == LineFormat::kJson) {
      ordered_json object = {{"time", time}, {"level", level}, {"message", text}};
      if (fields_of_message != nullptr) object.update(*fields_of_message);
      result = FormatFields(format_, object);
    } else {
      result = absl::StrCat(time, " ", level, " ", Printable(text));
      if (fields_of_message != nullptr) {
        absl::StrAppend(&result, " ", FormatFields(format_, *fields_of_message));
      }
    }
    result.push_back('\n');
    line.append(result.data(), result.data() + result.size());
  }

  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<LineFormatter>(format_);
  }

 private:
  const LineFormat format_;
};

void WriteMessageOfGrpc(gpr_log_func_args* args) {
  const auto level = args->severity == GPR_LOG_SEVERITY_ERROR  ? spdlog::level::err
                     : args->severity == GPR_LOG_SEVERITY_INFO ? spdlog::level::info
                                                               : spdlog::level::debug;
  // Limited, because clients can cause these lines.
  static LineLimiter lines(10);
  const std::optional<std::int64_t> left_out = lines.Allow(absl::Now());
  if (!left_out) return;
  ordered_json fields = {{"error", args->message}};
  if (*left_out > 0) fields["left_out"] = *left_out;
  WriteServerLog(level, "gRPC", fields);
}

}  // namespace

std::unique_ptr<spdlog::formatter> MakeLineFormatter(LineFormat format) {
  return std::make_unique<LineFormatter>(format);
}

void SetUpServerLog(LineFormat format, const std::string& level) {
  const std::shared_ptr<spdlog::logger> logger = spdlog::stderr_logger_mt("softlookup");
  logger->set_formatter(MakeLineFormatter(format));
  spdlog::set_default_logger(logger);
  spdlog::set_level(spdlog::level::from_str(level));
  gpr_set_log_function(&WriteMessageOfGrpc);
}

void WriteServerLog(spdlog::level::level_enum level, absl::string_view message,
                    const ordered_json& fields) {
  fields_of_message = &fields;
  spdlog::log(level, spdlog::string_view_t(message.data(), message.size()));
  fields_of_message = nullptr;
}

}  // namespace softlookup::server
