#include "client/tool/attention_flags.h"

#include "client/output/vocabulary.h"
#include "client/tool/validators.h"

namespace softlookup::tool {

using output::FromWord;
using output::Words;

v1::AttentionOptions AttentionFlags::ToProto() const {
  v1::AttentionOptions attention;
  attention.set_score(FromWord<v1::Score>(score));
  attention.set_mode(FromWord<v1::Mode>(mode));
  attention.set_weights(FromWord<v1::WeightsMode>(weights));
  if (temperature.has_value()) attention.set_temperature(*temperature);
  if (min_score.has_value()) attention.set_min_score(*min_score);
  if (recency_decay.has_value()) attention.set_recency_decay(*recency_decay);
  attention.set_top_k(top_k);
  attention.set_top_weights(top);
  attention.set_causal(causal);
  attention.set_causal_offset(causal_offset);
  if (max_error.has_value()) attention.set_max_error(*max_error);
  return attention;
}

void AddAttentionFlags(CLI::App* command, AttentionFlags* flags) {
  command
      ->add_option("--score", flags->score,
                   "Measure of how alike query and key are (default: the store's; without a store, "
                   "scaled-dot)")
      ->check(CLI::IsMember(Words<v1::Score>()));
  command->add_option("--temperature", flags->temperature,
                      "Logits are score / temperature (default: the store's; without a store, 1)");
  command
      ->add_option("--mode", flags->mode,
                   "How logits become weights: soft (softmax; default), hard (largest gets 1), "
                   "linear (the logit)")
      ->check(CLI::IsMember(Words<v1::Mode>()));
  command->add_option(
      "--top-k", flags->top_k,
      "For each query and head, only the K rows with the largest logits count (default: "
      "all)");
  command->add_option("--min-score", flags->min_score,
                      "Only rows with at least this score count (default: all)");
  command->add_option("--recency-decay", flags->recency_decay,
                      "Decay d in (0, 1]: adds ln(d) to a row's logit for each later position "
                      "(default 1: no decay)");
  auto* causal =
      command->add_flag("--causal", flags->causal,
                        "Query t, counted from 0, sees only positions up to --causal-offset + t");
  command
      ->add_option("--causal-offset", flags->causal_offset,
                   "With --causal: the last position that query 0 sees (default 0)")
      ->needs(causal);
  command->add_option("--max-error", flags->max_error,
                      "Soft mode: allowed error, as a part of the largest |value component|; 1e-5 "
                      "unless larger");
  command
      ->add_option("--weights", flags->weights,
                   "Which weights to show: none, the largest (top), or all")
      ->check(CLI::IsMember(Words<v1::WeightsMode>()))
      ->capture_default_str();
  command
      ->add_option("--top", flags->top,
                   "With --weights top: number of weights to show for each query and head")
      ->check(Positive())
      ->capture_default_str();
}

}  // namespace softlookup::tool
