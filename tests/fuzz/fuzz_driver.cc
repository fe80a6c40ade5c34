// The fuzz target without a fuzzer, for every compiler and for ctest:
//   decoder_fuzz_test [SEED [RUNS]]      the seed corpus, then RUNS mutations of it
//   decoder_fuzz_test --write-corpus DIR writes the seed corpus, for libFuzzer to start from
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "tests/fuzz/decoder_fuzz.h"
#include "tests/fuzz/mutator.h"
#include "tests/fuzz/seed_corpus.h"

namespace softlookup::fuzz {
namespace {

void RunInput(const std::string& input) {
  // A copy of just that size, so that AddressSanitizer sees a read past its end.
  const std::vector<std::uint8_t> bytes(input.begin(), input.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

int WriteCorpus(const std::string& directory) {
  int index = 0;
  for (const auto& message : SeedCorpus()) {
    std::ofstream file(directory + "/seed-" + std::to_string(index++), std::ios::binary);
    if (!message->SerializeToOstream(&file) || !file.flush()) return 1;
  }
  return 0;
}

int RunMutations(std::uint64_t seed, std::int64_t runs) {
  const Corpus corpus = SeedCorpus();
  for (const auto& message : corpus) {
    const std::int64_t answered = ReachedSoFar().answered;
    RunInput(message->SerializeAsString());
    if (ReachedSoFar().answered == answered) {
      std::cerr << "refused: " << message->ShortDebugString() << "\n";
      return 1;
    }
  }
  std::cout << "seed " << seed << ", " << runs << " inputs" << std::endl;
  Mutator mutator(seed, corpus);
  for (std::int64_t run = 0; run < runs; ++run) RunInput(mutator.Next());
  const Reached& reached = ReachedSoFar();
  std::cout << reached.parsed << " parsed, " << reached.decoded << " decoded, " << reached.answered
            << " answered\n";
  // Inputs that never get past the parser test nothing.
  if (reached.parsed < runs / 2 || reached.answered < runs / 10) {
    std::cerr << "too few inputs got far enough\n";
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace softlookup::fuzz

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--write-corpus") == 0) {
    return softlookup::fuzz::WriteCorpus(argv[2]);
  }
  return softlookup::fuzz::RunMutations(argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1,
                                        argc > 2 ? std::strtoll(argv[2], nullptr, 10) : 20'000);
}
