#include "client/console/memory_calls.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client/console/request_reader.h"
#include "client/cpp/status_macros.h"
#include "client/output/vocabulary.h"
#include "client/recall/posner_experiment.h"

namespace softlookup::console {
namespace {

using output::Json;

constexpr std::size_t kTemperaturesMax = 24;

Json OutcomeJson(const recall::CueOutcome& outcome) {
  return {{"accuracy", outcome.accuracy}, {"entropy", outcome.entropy}};
}

// Reads a number from `least` to `most`. Returns `absent` if there is none.
template <typename Number>
Number ReadWithin(const char* name, Number least, Number most, Number absent,
                  RequestReader* reader) {
  const double number = reader->Number(name).value_or(absent);
  if (number >= least && number <= most) return static_cast<Number>(number);
  reader->Refuse(name, "from " + Json(least).dump() + " to " + Json(most).dump());
  return absent;
}

}  // namespace

absl::StatusOr<Json> ReadMemory(const Backend& backend, const Json& request) {
  RequestReader reader(request);
  v1::GetMemoryRequest get;
  get.set_store(reader.Text("store"));
  get.set_name(reader.Text("name"));
  if (const auto begin = reader.Count("begin"); begin.has_value()) get.set_begin(*begin);
  if (const auto end = reader.Count("end"); end.has_value()) get.set_end(*end);
  CLIENT_RETURN_IF_ERROR(reader.status());
  CLIENT_ASSIGN_OR_RETURN(const v1::Memory memory, backend.client->GetMemory(get));
  CLIENT_ASSIGN_OR_RETURN(const FloatMatrix key, FloatMatrix::FromProto(memory.key()));
  CLIENT_ASSIGN_OR_RETURN(const FloatMatrix value, FloatMatrix::FromProto(memory.value()));
  return Json{{"name", memory.name()},
              {"begin", memory.begin()},
              {"end", memory.end()},
              {"weight", memory.weight()},
              {"revision", memory.revision()},
              {"key", FloatsText(key.data)},
              {"value", FloatsText(value.data)}};
}

absl::StatusOr<Json> Posner(const Backend& backend, const Json& request) {
  RequestReader reader(request);
  recall::PosnerDesign design;
  design.item_count = ReadWithin("memories", 2u, 64u, design.item_count, &reader);
  design.dim = ReadWithin("dim", 1u, 256u, design.dim, &reader);
  design.trial_count = ReadWithin("trials", 1u, 400u, design.trial_count, &reader);
  design.noise = ReadWithin("noise", 0.0, 1e6, design.noise, &reader);
  design.cue_strength = ReadWithin("cue_strength", 0.0, 1e6, design.cue_strength, &reader);
  design.seed = reader.Count("seed").value_or(design.seed);
  const std::string similarity = reader.Text("similarity");
  if (similarity == output::Word(v1::SCORE_EUCLIDEAN)) design.similarity = Similarity::Euclidean();
  const std::vector<double> temperatures = reader.Numbers("temperatures");
  if (temperatures.empty() || temperatures.size() > kTemperaturesMax) {
    reader.Refuse("temperatures", "a list of 1 to 24 numbers");
  }
  CLIENT_RETURN_IF_ERROR(reader.status());
  CLIENT_ASSIGN_OR_RETURN(const std::vector<recall::PosnerPoint> points,
                          RunPosner(design, temperatures, backend.client, *backend.stopping));
  Json list = Json::array();
  for (const recall::PosnerPoint& point : points) {
    list.push_back({{"temperature", point.temperature},
                    {"valid", OutcomeJson(point.valid)},
                    {"invalid", OutcomeJson(point.invalid)}});
  }
  return Json{{"points", std::move(list)}, {"chance", 1.0 / design.item_count}};
}

}  // namespace softlookup::console
