#include "client/tool/projection_flags.h"

#include "absl/strings/str_cat.h"
#include "client/cpp/status_macros.h"
#include "client/output/figure_text.h"
#include "client/tool/exit_code.h"
#include "client/tool/row_reader.h"

namespace softlookup::tool {
namespace {

using Dimension = Columns;  // Rows or columns of a matrix; 0: any number.

absl::StatusOr<FloatMatrix> ReadMap(const std::string& path, const Dimension& rows,
                                    const Dimension& columns) {
  CLIENT_ASSIGN_OR_RETURN(FloatMatrix map, ReadMatrix(path, "", columns));
  if (rows.count > 0 && map.rows != rows.count) {
    return InputError(path, absl::StrCat("has ", output::Counted(map.rows, "row"), ", but ",
                                         rows.meaning, " is ", rows.count));
  }
  return map;
}

}  // namespace

void AddProjectionFlags(CLI::App* command, ProjectionFlags* flags) {
  const auto add = [&](const char* flag, std::string* path, const char* description) {
    command->add_option(flag, *path, description)->type_name("FILE")->group("Projection");
  };
  add("--projection-query", &flags->query,
      "File of W_q, key_dim x input_dim: an input x gives the query W_q x. Needs the other two");
  add("--projection-key", &flags->key,
      "File of W_k, key_dim x input_dim: an input x gives the key W_k x. Needs the other two");
  add("--projection-value", &flags->value,
      "File of W_v, value_dim x input_dim: an input x gives the value W_v x. Needs the other two");
}

absl::StatusOr<v1::Projection> ReadProjection(const ProjectionFlags& flags,
                                              const v1::Store& store) {
  if (flags.query.empty() || flags.key.empty() || flags.value.empty()) {
    return UsageError(
        "a projection takes all of --projection-query, --projection-key and --projection-value");
  }
  CLIENT_ASSIGN_OR_RETURN(const FloatMatrix query,
                          ReadMap(flags.query, {store.key_dim(), "key_dim"}, {0, ""}));
  const Dimension inputs = {query.cols, absl::StrCat("input_dim of ", flags.query)};
  const Dimension keys = store.key_dim() > 0
                             ? Dimension{store.key_dim(), "key_dim"}
                             : Dimension{query.rows, absl::StrCat("key_dim of ", flags.query)};
  CLIENT_ASSIGN_OR_RETURN(const FloatMatrix key, ReadMap(flags.key, keys, inputs));
  CLIENT_ASSIGN_OR_RETURN(const FloatMatrix value,
                          ReadMap(flags.value, {store.value_dim(), "value_dim"}, inputs));
  v1::Projection projection;
  CLIENT_RETURN_IF_ERROR(FloatMatrixView(query).ToProto(projection.mutable_query()));
  CLIENT_RETURN_IF_ERROR(FloatMatrixView(key).ToProto(projection.mutable_key()));
  CLIENT_RETURN_IF_ERROR(FloatMatrixView(value).ToProto(projection.mutable_value()));
  return projection;
}

}  // namespace softlookup::tool
