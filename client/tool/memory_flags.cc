#include "client/tool/memory_flags.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "client/cli/nearest_name.h"
#include "client/cpp/status_macros.h"
#include "client/output/figure_text.h"
#include "client/output/vocabulary.h"
#include "client/tool/exit_code.h"
#include "client/tool/row_reader.h"
#include "softlookup/float_matrix.h"

namespace softlookup::tool {
namespace {

using cli::Suggestion;
using output::FromWord;
using output::Words;

absl::StatusOr<FloatMatrix> ReadGate(const std::string& path, std::uint32_t key_dim) {
  CLIENT_ASSIGN_OR_RETURN(const auto reader, OpenRows(path, "", {key_dim + 1, "key_dim + 1"}));
  const auto refuse = [&](absl::string_view rows) {
    return InputError(path, absl::StrCat("has ", rows,
                                         ", but a gate is one row: the bias, then a "
                                         "weight for each component of a key"));
  };
  if (reader->row_count().value_or(1) != 1) {
    return refuse(output::Counted(*reader->row_count(), "row"));
  }
  FloatMatrix gate;
  CLIENT_ASSIGN_OR_RETURN(gate.rows, reader->Read(1, &gate.data));
  gate.cols = reader->cols();
  if (gate.rows == 0) return refuse("0 rows");
  std::vector<float> surplus;  // Of a long file, only a second row is read.
  CLIENT_ASSIGN_OR_RETURN(const std::uint32_t surplus_count, reader->Read(1, &surplus));
  if (surplus_count > 0) return refuse("more than 1 row");
  return gate;
}

}  // namespace

const char kMemoryHelp[] =
    "Memories are declared by\n"
    "  --memory NAME=average                the mean of all rows\n"
    "  --memory NAME=decayed-sum:DECAY      a sum that DECAY multiplies before a row is added\n"
    "  --memory NAME=decayed-average:DECAY  that sum, divided by the sum if every row were 1\n"
    "  --memory NAME=gated:FILE             a sum with the decay sigmoid(gate . [1, row's key])\n"
    "  --memory NAME=gated-average:FILE     that sum, divided by the sum if every row were 1\n"
    "DECAY is between 0 and 1. FILE ends in .npy, .csv or .fvecs, and has the gate as one row: a\n"
    "bias, then a weight for each component of a key. Appends need no gates: the server computes\n"
    "each row's decay from its key.";

void AddMemoryFlag(CLI::App* command, std::vector<std::string>* memories) {
  command
      ->add_option("--memory", *memories,
                   "A running memory besides `average`; the gated kinds read a gate from FILE; may "
                   "be repeated")
      ->type_name("NAME=KIND[:DECAY|:FILE]")
      ->allow_extra_args(false);
}

absl::StatusOr<v1::MemorySpec> ParseMemory(const std::string& text, std::uint32_t key_dim) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return UsageError(absl::StrCat(
        "--memory takes NAME=KIND, NAME=KIND:DECAY or NAME=KIND:FILE, not \"", text, "\""));
  }
  const std::size_t colon = std::min(text.find(':', equals), text.size());
  const std::string name = text.substr(0, equals);
  const std::string kind = text.substr(equals + 1, colon - equals - 1);
  // What follows the colon: a decay or a file.
  const std::string parameter = text.substr(std::min(colon + 1, text.size()));
  const auto refuse = [&](const std::string& message) {
    return UsageError(absl::StrCat("--memory ", text, ": ", message));
  };
  v1::MemorySpec spec;
  spec.set_name(name);
  spec.set_kind(FromWord<v1::MemoryKind>(kind));
  if (spec.kind() == v1::MEMORY_KIND_UNSPECIFIED) {
    const std::vector<std::string> kinds = Words<v1::MemoryKind>();
    return refuse(absl::StrCat("unknown kind \"", kind, "\", not one of ",
                               absl::StrJoin(kinds, ", "), Suggestion(kind, kinds)));
  }
  if (HasDecay(spec.kind())) {
    double decay;
    if (!absl::SimpleAtod(parameter, &decay)) {
      return refuse(
          absl::StrCat(kind, " needs a decay between 0 and 1, such as ", name, "=", kind, ":0.9"));
    }
    spec.set_decay(decay);
  } else if (HasGate(spec.kind())) {
    if (parameter.empty()) {
      return refuse(absl::StrCat(kind,
                                 " needs a file of key_dim + 1 numbers, the bias first, such "
                                 "as ",
                                 name, "=", kind, ":gate.csv"));
    }
    const absl::StatusOr<FloatMatrix> gate = ReadGate(parameter, key_dim);
    if (absl::IsInvalidArgument(gate.status())) {
      return AsInputError(absl::InvalidArgumentError(
          absl::StrCat("--memory ", name, ": ", gate.status().message())));
    }
    CLIENT_RETURN_IF_ERROR(gate.status());
    CLIENT_RETURN_IF_ERROR(FloatMatrixView(*gate).ToProto(spec.mutable_gate()));
  } else if (colon < text.size()) {
    return refuse(absl::StrCat(kind, " has neither a decay nor a gate"));
  }
  return spec;
}

bool HasDecay(v1::MemoryKind kind) {
  return kind == v1::MEMORY_KIND_DECAYED_SUM || kind == v1::MEMORY_KIND_DECAYED_AVERAGE;
}

bool HasGate(v1::MemoryKind kind) {
  return kind == v1::MEMORY_KIND_GATED || kind == v1::MEMORY_KIND_GATED_AVERAGE;
}

}  // namespace softlookup::tool
