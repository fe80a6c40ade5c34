#include "client/recall/word_recall.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/status_macros.h"
#include "client/recall/blend.h"
#include "client/recall/scratch_store.h"
#include "softlookup/word_encoder.h"

namespace softlookup::recall {
namespace {

// Appends a row for each word, whose encoding is both key and value.
absl::Status AppendWords(const std::vector<std::string>& words, std::uint32_t dim,
                         ScratchStore* store) {
  // 4 MiB of keys and 4 MiB of values, well under the limit on messages, 64 MiB.
  constexpr std::size_t kBatchFloatsMax = std::size_t{1} << 20;
  const WordEncoder encoder(dim);
  const std::size_t batch_rows = std::max<std::size_t>(kBatchFloatsMax / dim, 1);
  for (std::size_t begin = 0; begin < words.size(); begin += batch_rows) {
    FloatMatrix batch{.rows = 0, .cols = dim, .data = {}};
    for (; batch.rows < std::min(batch_rows, words.size() - begin); ++batch.rows) {
      const std::vector<float> encoding = encoder.Encode(words[begin + batch.rows]);
      batch.data.insert(batch.data.end(), encoding.begin(), encoding.end());
    }
    CLIENT_RETURN_IF_ERROR(store->Append(batch, batch));
  }
  return absl::OkStatus();
}

}  // namespace

double WordRecall::perplexity() const { return std::exp(stats.entropy()); }

absl::StatusOr<std::vector<WordRecall>> RecallWords(const WordDesign& design,
                                                    absl::Span<const double> temperatures,
                                                    Client* client,
                                                    const std::atomic<bool>& interrupted) {
  const WordEncoder encoder(design.dim);
  const std::vector<float> noise = encoder.Encode(absl::StrCat("recall/", design.seed, "/noise"));
  const FloatMatrix cue{.rows = 1,
                        .cols = design.dim,
                        .data = Blend(encoder.Encode(design.cue), design.noise, noise)};
  v1::Store config;
  config.set_key_dim(design.dim);
  config.set_value_dim(design.dim);
  config.set_score(design.similarity.score());
  CLIENT_ASSIGN_OR_RETURN(const auto store,
                          ScratchStore::Create(client, "recall", config, interrupted));
  CLIENT_RETURN_IF_ERROR(AppendWords(design.words, design.dim, store.get()));
  LookupOptions options;
  options.attention.set_weights(v1::WEIGHTS_MODE_TOP);
  options.attention.set_top_weights(design.top);
  std::vector<WordRecall> recalls;
  for (const double temperature : temperatures) {
    options.attention.set_temperature(temperature);
    CLIENT_ASSIGN_OR_RETURN(LookupAnswer answer, store->Lookup(cue, options));
    recalls.push_back({temperature, std::move(answer.values.data), std::move(answer.stats[0]),
                       std::move(answer.weights[0])});
  }
  CLIENT_RETURN_IF_ERROR(store->Delete());
  return recalls;
}

RecalledWord NearestWord(const WordDesign& design, absl::Span<const float> context) {
  const WordEncoder encoder(design.dim);
  RecalledWord nearest{.word = {}, .similarity = -std::numeric_limits<double>::infinity()};
  for (const std::string& word : design.words) {
    const double candidate = design.similarity(context, encoder.Encode(word));
    if (candidate > nearest.similarity) nearest = {word, candidate};
  }
  return nearest;
}

}  // namespace softlookup::recall
