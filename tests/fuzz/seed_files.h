#ifndef SOFTLOOKUP_TESTS_FUZZ_SEED_FILES_H_
#define SOFTLOOKUP_TESTS_FUZZ_SEED_FILES_H_

#include <map>
#include <string>

namespace softlookup::fuzz {

// The seeds in corpus/ that are no text, by their path there: decoder_fuzz_test --write-corpus.
std::map<std::string, std::string> SeedFiles();

}  // namespace softlookup::fuzz

#endif  // SOFTLOOKUP_TESTS_FUZZ_SEED_FILES_H_
