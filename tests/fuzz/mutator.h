#ifndef SOFTLOOKUP_TESTS_FUZZ_MUTATOR_H_
#define SOFTLOOKUP_TESTS_FUZZ_MUTATOR_H_

#include <google/protobuf/message.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/seed_corpus.h"

namespace softlookup::fuzz {

// Makes broken requests of good ones: first some fields get values from the ends of their range,
// then, every other time, some of the bytes on the wire change. The same seed gives the same inputs
// with every standard library, hence no std distributions.
class Mutator {
 public:
  // `corpus`, not empty, must outlive the mutator.
  Mutator(std::uint64_t seed, const Corpus& corpus) : random_(seed), corpus_(corpus) {}

  std::string Next();

 private:
  std::size_t Below(std::size_t end) { return random_() % end; }
  template <typename T>
  const T& OneOf(const std::vector<T>& choices) {
    return choices[Below(choices.size())];
  }
  std::string RandomBytes(std::size_t count);

  void MutateMessage(google::protobuf::Message& message);
  void SetField(google::protobuf::Message& message, const google::protobuf::FieldDescriptor& field);
  void MutateBytes(std::string& bytes);

  std::mt19937_64 random_;
  const Corpus& corpus_;
};

}  // namespace softlookup::fuzz

#endif  // SOFTLOOKUP_TESTS_FUZZ_MUTATOR_H_
