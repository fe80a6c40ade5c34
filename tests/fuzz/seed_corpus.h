#ifndef SOFTLOOKUP_TESTS_FUZZ_SEED_CORPUS_H_
#define SOFTLOOKUP_TESTS_FUZZ_SEED_CORPUS_H_

#include <google/protobuf/message.h>

#include <memory>
#include <vector>

namespace softlookup::fuzz {

using Corpus = std::vector<std::unique_ptr<google::protobuf::Message>>;

// Requests that the fuzz target's engine answers. Between them they set every served field.
Corpus SeedCorpus();

}  // namespace softlookup::fuzz

#endif  // SOFTLOOKUP_TESTS_FUZZ_SEED_CORPUS_H_
