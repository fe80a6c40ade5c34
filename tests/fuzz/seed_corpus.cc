#include "tests/fuzz/seed_corpus.h"

#include <google/protobuf/text_format.h>

#include <cstdlib>
#include <memory>
#include <utility>

#include "softlookup/v1/lookup.pb.h"
#include "softlookup/v1/memory.pb.h"
#include "softlookup/v1/row.pb.h"
#include "softlookup/v1/store.pb.h"

namespace softlookup::fuzz {
namespace {

template <typename Message>
void Add(Corpus& corpus, const char* text) {
  auto message = std::make_unique<Message>();
  if (!google::protobuf::TextFormat::ParseFromString(text, message.get())) std::abort();
  corpus.push_back(std::move(message));
}

}  // namespace

Corpus SeedCorpus() {
  Corpus corpus;
  Add<v1::CreateStoreRequest>(corpus, R"(
          store { name: "acme/a-1" key_dim: 6 value_dim: 4 num_heads: 2 score: SCORE_COSINE
            temperature: 0.5 storage_type: ELEMENT_TYPE_FLOAT32
            memories { name: "sum" kind: MEMORY_KIND_DECAYED_SUM decay: 0.5 }
            memories { name: "gate" kind: MEMORY_KIND_GATED
              gate { rows: 1 cols: 7 values: [1, 2, 3, 4, 5, 6, 7] } }
            labels { key: "team" value: "search" } labels { key: "b" value: "" } })");
  Add<v1::CreateStoreRequest>(corpus, R"(
          store { name: "half" key_dim: 3 value_dim: 5 storage_type: ELEMENT_TYPE_BFLOAT16 })");
  Add<v1::CreateStoreRequest>(corpus, R"(
          store { name: "quarter" key_dim: 17 value_dim: 1 storage_type: ELEMENT_TYPE_INT8 })");
  Add<v1::UpdateStoreRequest>(corpus, R"(
          store { name: "s" score: SCORE_EUCLIDEAN temperature: 1e-6
            labels { key: "a" value: "b" } }
          update_mask { paths: "score" paths: "temperature" paths: "labels" })");
  Add<v1::AppendRequest>(corpus, R"(
          store: "s" keys { rows: 2 cols: 2 values: [1, -2, 3e38, 1e-40] }
          values { rows: 2 cols: 1 values: [5, 6] } return_memories: "average")");
  Add<v1::AppendRequest>(corpus, R"(
          keys { rows: 1 cols: 2 element_type: ELEMENT_TYPE_FLOAT32
            data: "\000\000\200\077\000\000\000\300" }
          values { rows: 1 cols: 1 element_type: ELEMENT_TYPE_FLOAT64
            data: "\000\000\000\000\000\000\360\077" } acknowledge: ACKNOWLEDGE_APPLIED)");
  Add<v1::AppendRequest>(corpus, R"(
          store: "heads" keys { rows: 1 cols: 2 element_type: ELEMENT_TYPE_BFLOAT16
            data: "\200\077\000\300" }
          values { rows: 1 cols: 4 values: [1, 2, 3, 4] } return_memories: "gate")");
  Add<v1::LookupRequest>(corpus, R"(
          store: "s" queries { rows: 2 cols: 2 values: [1, 2, -3, 4] } tag: 7
          options { score: SCORE_DOT temperature: 0.5 mode: MODE_SOFT min_score: -1e30
            recency_decay: 0.5 causal: true causal_offset: 1 weights: WEIGHTS_MODE_ALL }
          filter { begin: 1 end: 3 last: 2 } source: SOURCE_ROWS min_revision: 2)");
  Add<v1::LookupRequest>(corpus, R"(
          store: "heads" queries { rows: 3 cols: 2 values: [1, 2, -3, 4, 0, 0] }
          options { score: SCORE_SQUARED_EUCLIDEAN mode: MODE_HARD top_k: 2
            weights: WEIGHTS_MODE_TOP top_weights: 2 })");
  Add<v1::LookupRequest>(corpus, R"(
          queries { rows: 1 cols: 2 element_type: ELEMENT_TYPE_FLOAT32
            data: "\000\000\200\077\377\377\177\177" }
          options { mode: MODE_LINEAR weights: WEIGHTS_MODE_TOP })");
  Add<v1::LookupRequest>(corpus, "store: 's' queries { cols: 2 } min_revision: 9");
  Add<v1::GetMemoryRequest>(corpus, "store: 'heads' name: 'average' begin: 1 end: 3");
  Add<v1::GetMemoryRequest>(corpus, "store: 'heads' name: 'gated-mean' end: 2");
  Add<v1::LookupRequest>(corpus, R"(
          store: "heads" queries { rows: 2 cols: 2 values: [1, 2, -3, 4] }
          options { score: SCORE_DOT temperature: 0.25 max_error: 0.5 })");
  Add<v1::RenameStoreRequest>(corpus, "store: 's' new_name: 'heads' replace: true");
  Add<v1::CompactStoreRequest>(corpus, "name: 's' end_memories: true");
  return corpus;
}

}  // namespace softlookup::fuzz
