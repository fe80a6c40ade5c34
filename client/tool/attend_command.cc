#include <cstdint>
#include <iterator>
#include <memory>
#include <string>

#include "client/cpp/status_macros.h"
#include "client/tool/attention_flags.h"
#include "client/tool/command.h"
#include "client/tool/exit_code.h"
#include "client/tool/lookup_printer.h"
#include "client/tool/npy_writer.h"
#include "client/tool/projection_flags.h"
#include "client/tool/row_reader.h"
#include "client/tool/validators.h"
#include "client/tool/whole_file.h"

namespace softlookup::tool {
namespace {

struct AttendFlags {
  // Paths; "-" is standard input.
  std::string queries;
  std::string keys;
  std::string values;
  std::string inputs;
  std::string format = "csv";

  ProjectionFlags projection;
  bool self = false;
  std::uint32_t heads = 1;
  AttentionFlags attention;
  std::string values_out;
};

absl::Status CheckFlags(const AttendFlags& flags) {
  const bool queries = !flags.queries.empty();
  const bool pairs = !flags.keys.empty() && !flags.values.empty();
  const bool any_of_pair = !flags.keys.empty() || !flags.values.empty();
  const bool inputs = !flags.inputs.empty();
  const bool projection = flags.projection.any();
  const bool separate = queries && pairs && !inputs && !flags.self && !projection;
  const bool self = flags.self && inputs && !queries && !any_of_pair;
  const bool projected = queries && inputs && projection && !flags.self && !any_of_pair;
  if (!separate && !self && !projected) {
    return UsageError(
        "attend needs --queries, --keys and --values; or --self and --inputs, with a projection or "
        "without; or --queries, --inputs and a projection");
  }
  if ((flags.queries == "-") + (flags.keys == "-") + (flags.values == "-") + (flags.inputs == "-") >
      1) {
    return UsageError("only one file can be standard input");
  }
  return absl::OkStatus();
}

// Reads the file at `path` into `matrix` of `request`. Leaves it unset if `path` is empty.
absl::Status Read(const std::string& path, const AttendFlags& flags, const Session& session,
                  v1::Matrix* (v1::AttendRequest::*matrix)(), v1::AttendRequest* request) {
  if (path.empty()) return absl::OkStatus();
  CLIENT_ASSIGN_OR_RETURN(const FloatMatrix read,
                          ReadMatrix(path, flags.format, {0, ""}, session.err));
  return FloatMatrixView(read).ToProto((request->*matrix)());
}

absl::Status Attend(const AttendFlags& flags, const Session& session) {
  CLIENT_RETURN_IF_ERROR(CheckFlags(flags));
  CLIENT_RETURN_IF_ERROR(CheckWritable(flags.values_out));
  v1::AttendRequest request;
  CLIENT_RETURN_IF_ERROR(
      Read(flags.queries, flags, session, &v1::AttendRequest::mutable_queries, &request));
  CLIENT_RETURN_IF_ERROR(
      Read(flags.keys, flags, session, &v1::AttendRequest::mutable_keys, &request));
  CLIENT_RETURN_IF_ERROR(
      Read(flags.values, flags, session, &v1::AttendRequest::mutable_values, &request));
  CLIENT_RETURN_IF_ERROR(
      Read(flags.inputs, flags, session, &v1::AttendRequest::mutable_inputs, &request));
  if (flags.projection.any()) {
    CLIENT_ASSIGN_OR_RETURN(*request.mutable_projection(),
                            ReadProjection(flags.projection, v1::Store()));
  }
  request.set_self(flags.self);
  request.set_num_heads(flags.heads);
  *request.mutable_options() = flags.attention.ToProto();

  CLIENT_ASSIGN_OR_RETURN(Client client, session.Connect());
  CLIENT_ASSIGN_OR_RETURN(v1::AttendResponse response, client.Attend(request));
  LookupAnswer answer;
  CLIENT_ASSIGN_OR_RETURN(answer.values, FloatMatrix::FromProto(response.values()));
  answer.stats.assign(response.stats().begin(), response.stats().end());
  answer.weights.assign(response.weights().begin(), response.weights().end());
  if (!flags.values_out.empty()) CLIENT_RETURN_IF_ERROR(WriteNpy(flags.values_out, answer.values));
  PrintAttention(answer, session);
  return absl::OkStatus();
}

}  // namespace

void AddAttendCommand(CLI::App* app, Session* session) {
  auto flags = std::make_shared<AttendFlags>();
  CLI::App* attend = app->add_subcommand(
      "attend", "Answer queries over keys and values from files; nothing is stored");
  attend->footer(
      "FILE ends in .npy (floats, integers or booleans), .csv (commas or white space) or .fvecs,\n"
      "or is - for standard input. If the first line of a .csv file is a header, it is skipped.\n"
      "All files go to the server in one request, of up to 4,096 queries and 65,536 keys unless\n"
      "the server has other limits. Ask more queries in parts: --queries with some of the rows,\n"
      "--keys and --values with all, and --causal-offset with the number of rows before the part.");
  const auto add_file = [&](const char* flag, std::string* path, const char* description) {
    attend->add_option(flag, *path, description)->type_name("FILE");
  };
  add_file("--queries", &flags->queries,
           "File of queries, one per row, with as many columns as the keys");
  add_file("--keys", &flags->keys, "File of keys, one per row");
  add_file("--values", &flags->values, "File of values, one per row; row i belongs to key i");
  attend->add_flag("--self", flags->self,
                   "Self attention: queries, keys and values are all made from --inputs");
  add_file("--inputs", &flags->inputs,
           "File of inputs to project; with --self and no projection, used as queries, keys and "
           "values");
  attend
      ->add_option(
          "--format", flags->format,
          "Format of standard input (-); the format of a named file follows from its ending")
      ->check(CLI::IsMember(RowFormats()))
      ->capture_default_str();
  attend
      ->add_option("--heads", flags->heads,
                   "Number of heads, equal parts of queries, keys and values; must divide both "
                   "dimensions")
      ->check(Positive())
      ->capture_default_str();
  AddProjectionFlags(attend, &flags->projection);
  AddAttentionFlags(attend, &flags->attention);
  attend
      ->add_option("--values-out", flags->values_out,
                   "Also write the answers to this file, one row per query")
      ->type_name("FILE.npy")
      ->check(NameEndsIn(".npy"));
  attend->callback([=] { session->run = [=] { return Attend(*flags, *session); }; });
}

}  // namespace softlookup::tool
