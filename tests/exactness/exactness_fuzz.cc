// Random stores, writes and lookups over the wire, each answer against the exact one; README.md.
//
//   exactness_fuzz [--seed S] [--operations N] [--seconds T] [--sanitized-operations M]
//                  [--long-seconds L] [--cuts-stores 0|1]
//
// Runs N operations of the seed S. With T, goes on with the next seeds until T seconds are over.
// M takes the place of N where a sanitizer watches the server, and L takes the place of T where
// SOFTLOOKUP_LONG_TESTS is in the environment. With `--cuts-stores 1`, calls go through a router,
// and stores are cut into ranges of rows.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "absl/strings/str_format.h"
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
  std::uint64_t cuts_stores = 0;
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
                            : name == "--cuts-stores"          ? &arguments.cuts_stores
                                                               : nullptr;
    char* end = nullptr;
    if (number != nullptr && i + 1 < argc) *number = std::strtoull(argv[i + 1], &end, 10);
    if (end == nullptr || *end != 0) {
      std::fprintf(stderr,
                   "usage: %s [--seed S] [--operations N] [--seconds T] "
                   "[--sanitized-operations M] [--long-seconds L] [--cuts-stores 0|1]\n",
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
std::size_t RunSeed(std::uint64_t seed, std::uint64_t operations, bool cuts_stores, Tally& tally) {
  Session session(seed, cuts_stores, tally);
  std::size_t printed = 0;
  std::uint64_t operation = 0;
  while (operation < operations && session.failures().size() < kFailuresMax) {
    session.Run(++operation);
    for (; printed < session.failures().size(); ++printed) {
      absl::PrintF("%s\n", session.failures()[printed]);
      std::fflush(stdout);
    }
  }
  const Session::Counts& counts = session.counts();
  absl::PrintF(
      "seed %d: %d operations: %d stores, %d appends, %d rows, %d deletions, %d "
      "lookups, %d of them beside writes, %d alone again, %d together again, %d memories, "
      "%d crashes, %d times cut into ranges; %d failures\n",
      seed, operation, counts.stores, counts.appends, counts.rows, counts.deletions, counts.lookups,
      counts.beside_writes, counts.alone, counts.together, counts.memories, counts.restarts,
      counts.cuts, session.failures().size());
  if (cuts_stores && counts.cuts == 0) {
    absl::PrintF("seed %d: no store was cut into ranges, so the seed shows nothing\n", seed);
    return session.failures().size() + 1;
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
    failures += RunSeed(seed++, arguments.operations, arguments.cuts_stores != 0, tally);
  } while (failures < kFailuresMax && std::chrono::steady_clock::now() < end);
  absl::PrintF(
      "%d answers, %d comparisons, %d close calls, %d blurred by float64, %d of some "
      "rows\n",
      tally.answers, tally.comparisons, tally.close_calls, tally.blurred_answers,
      tally.skipping_answers);
  for (const auto& [what, ratio] : tally.worst) {
    absl::PrintF("  %-50s at most %.4f of its bound\n", what, ratio);
  }
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace softlookup::exactness

int main(int argc, char** argv) { return softlookup::exactness::Main(argc, argv); }
