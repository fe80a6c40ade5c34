// FuzzEngine() without a fuzzer, for every compiler and for ctest:
//   decoder_fuzz_test [SEED [RUNS]]      the seed corpus, then RUNS mutations of it
//   decoder_fuzz_test --write-corpus DIR writes SeedFiles()
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "tests/fuzz/engine_fuzz.h"
#include "tests/fuzz/mutator.h"
#include "tests/fuzz/seed_corpus.h"
#include "tests/fuzz/seed_files.h"
#include "tests/fuzz/targets.h"
#include "tests/testing/sanitized.h"

namespace softlookup::fuzz {
namespace {

void RunInput(const std::string& input) {
  // A copy of just that size, so that AddressSanitizer sees a read past its end.
  const std::vector<std::uint8_t> bytes(input.begin(), input.end());
  FuzzEngine(bytes.data(), bytes.size());
}

int WriteCorpus(const std::filesystem::path& directory) {
  for (const auto& [path, bytes] : SeedFiles()) {
    std::filesystem::create_directories((directory / path).parent_path());
    std::ofstream file(directory / path, std::ios::binary);
    if (!(file << bytes).flush()) return 1;
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
                                        argc > 2 ? std::strtoll(argv[2], nullptr, 10)
                                        : softlookup::testing::kSanitized ? 5'000
                                                                          : 20'000);
}
