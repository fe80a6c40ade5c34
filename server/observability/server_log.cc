#include "server/observability/server_log.h"

#include <grpc/support/log.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/observability/line_limiter.h"

namespace softlookup::server {
namespace {

using nlohmann::ordered_json;

// The fields of the message that this thread is logging, for the formatter. Null: none. spdlog
// itself passes only text on.
thread_local const ordered_json* fields_of_message = nullptr;

std::string Encoded(const ordered_json& value) {
  return value.dump(/*indent=*/-1, ' ', /*ensure_ascii=*/true,
                    ordered_json::error_handler_t::replace);
}

// Escapes `text` as in a JSON string, except that quotes stay as they are.
std::string Printable(absl::string_view text) {
  const std::string quoted = Encoded(std::string(text));
  return absl::StrReplaceAll(absl::string_view(quoted).substr(1, quoted.size() - 2),
                             {{"\\\\", "\\\\"}, {"\\\"", "\""}});
}

// Returns `value` as text. Quotes a string unless it is one plain word.
std::string TextValue(const ordered_json& value) {
  if (!value.is_string()) return Encoded(value);
  const std::string& text = value.get_ref<const std::string&>();
  const bool is_word = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           absl::string_view("._-/:[]%").find(c) != absl::string_view::npos;
  });
  return is_word ? text : Encoded(value);
}

class LineFormatter final : public spdlog::formatter {
 public:
  explicit LineFormatter(LineFormat format) : format_(format) {}

  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& line) override {
    const std::string time = absl::FormatTime("%Y-%m-%d%ET%H:%M:%E3SZ",
                                              absl::FromChrono(message.time), absl::UTCTimeZone());
    const auto level_name = spdlog::level::to_string_view(message.level);
    const std::string level(level_name.data(), level_name.size());
    const std::string text(message.payload.data(), message.payload.size());
    std::string result;
    if (format_ == LineFormat::kJson) {
      ordered_json object = {{"time", time}, {"level", level}, {"message", text}};
      if (fields_of_message != nullptr) object.update(*fields_of_message);
      result = Encoded(object);
    } else {
      result = absl::StrCat(time, " ", level, " ", Printable(text));
      if (fields_of_message != nullptr) {
        absl::StrAppend(&result, " ", FormatFields(LineFormat::kText, *fields_of_message));
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

std::string FormatFields(LineFormat format, const ordered_json& fields) {
  if (format == LineFormat::kJson) return Encoded(fields);
  std::string text;
  for (const auto& [name, value] : fields.items()) {
    absl::StrAppend(&text, text.empty() ? "" : " ", name, "=", TextValue(value));
  }
  return text;
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
