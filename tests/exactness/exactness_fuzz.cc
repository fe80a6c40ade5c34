// Random stores, writes and lookups over the wire, each answer against the exact one; README.md.
//
//   exactness_fuzz [--seed S] [--operations N] [--seconds T] [--sanitized-operations M]
//                  [--long-seconds L]
//
// Runs N operations of the seed S. With T, goes on with the next seeds until T seconds are over.
// M takes the place of N where a sanitizer watches the server, and L takes the place of T where
// SOFTLOOKUP_LONG_TESTS is in the environment.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tests/exactness/session.h"

namespace softlookup::exactness {
namespace {

constexpr std::size_t kFailuresMax = 10;

struct Arguments {
  std::uint64_t seed = 1;
  std::uint64_t operations = 300;
  std::uint64_t seconds = 0;
  std::uint64_t sanitized_operations = 0;
  std::uint64_t long_seconds = 0;
};

Arguments ArgumentsOf(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view name = argv[i];
    std::uint64_t* number = name == "--seed"                   ? &arguments.seed
                            : name == "--operations"           ? &arguments.operations
                            : name == "--seconds"              ? &arguments.seconds
                            : name == "--sanitized-operations" ? &arguments.sanitized_operations
                            : name == "--long-seconds"         ? &arguments.long_seconds
                                                               : nullptr;
    char* end = nullptr;
    if (number != nullptr && i + 1 < argc) *number = std::strtoull(argv[i + 1], &end, 10);
    if (end == nullptr || *end != 0) {
      std::fprintf(stderr,
                   "usage: %s [--seed S] [--operations N] [--seconds T] "
                   "[--sanitized-operations M] [--long-seconds L]\n",
                   argv[0]);
      std::exit(2);
    }
  }
  if (arguments.sanitized_operations > 0 && testing::BinariesAreSanitized()) {
    arguments.operations = arguments.sanitized_operations;
  }
  if (arguments.long_seconds > 0 && std::getenv("SOFTLOOKUP_LONG_TESTS") != nullptr) {
    arguments.seconds = arguments.long_seconds;
  }
  return arguments;
}

// One seed. Returns the number of failures.
std::size_t RunSeed(std::uint64_t seed, std::uint64_t operations, Tally& tally) {
  Session session(seed);
  std::size_t printed = 0;
  std::uint64_t operation = 0;
  while (operation < operations && session.failures().size() < kFailuresMax) {
    session.Run(++operation);
    for (; printed < session.failures().size(); ++printed) {
      std::printf("%s\n", session.failures()[printed].c_str());
      std::fflush(stdout);
    }
  }
  const Session::Counts& counts = session.counts();
  std::printf(
      "seed %llu: %llu operations: %llu stores, %llu appends, %llu rows, %llu deletions, %llu "
      "lookups, %llu of them beside writes, %llu alone again, %llu together again, %llu memories, "
      "%llu crashes; %zu failures\n",
      static_cast<unsigned long long>(seed), static_cast<unsigned long long>(operation),
      static_cast<unsigned long long>(counts.stores),
      static_cast<unsigned long long>(counts.appends), static_cast<unsigned long long>(counts.rows),
      static_cast<unsigned long long>(counts.deletions),
      static_cast<unsigned long long>(counts.lookups),
      static_cast<unsigned long long>(counts.beside_writes),
      static_cast<unsigned long long>(counts.alone),
      static_cast<unsigned long long>(counts.together),
      static_cast<unsigned long long>(counts.memories),
      static_cast<unsigned long long>(counts.restarts), session.failures().size());
  const Tally& judged = session.tally();
  tally.answers += judged.answers;
  tally.comparisons += judged.comparisons;
  tally.close_calls += judged.close_calls;
  tally.blurred_answers += judged.blurred_answers;
  tally.skipping_answers += judged.skipping_answers;
  for (const auto& [what, ratio] : judged.worst) {
    double& worst = tally.worst[what];
    worst = std::max(worst, ratio);
  }
  return session.failures().size();
}

int Main(int argc, char** argv) {
  const Arguments arguments = ArgumentsOf(argc, argv);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(arguments.seconds);
  Tally tally;
  std::size_t failures = 0;
  std::uint64_t seed = arguments.seed;
  do {
    failures += RunSeed(seed++, arguments.operations, tally);
  } while (failures < kFailuresMax && std::chrono::steady_clock::now() < end);
  std::printf(
      "%llu answers, %llu comparisons, %llu close calls, %llu blurred by float64, %llu of some "
      "rows\n",
      static_cast<unsigned long long>(tally.answers),
      static_cast<unsigned long long>(tally.comparisons),
      static_cast<unsigned long long>(tally.close_calls),
      static_cast<unsigned long long>(tally.blurred_answers),
      static_cast<unsigned long long>(tally.skipping_answers));
  for (const auto& [what, ratio] : tally.worst) {
    std::printf("  %-50s at most %.4f of its bound\n", what.c_str(), ratio);
  }
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace softlookup::exactness

int main(int argc, char** argv) { return softlookup::exactness::Main(argc, argv); }
