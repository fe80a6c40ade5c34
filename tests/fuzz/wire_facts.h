#ifndef SOFTLOOKUP_TESTS_FUZZ_WIRE_FACTS_H_
#define SOFTLOOKUP_TESTS_FUZZ_WIRE_FACTS_H_

#include <google/protobuf/descriptor.h>

#include <cstdint>
#include <string>

namespace softlookup::fuzz {

// What the bytes of a message are, told field by field with protobuf's parser of unknown fields:
// slower than server::MessageScan, and written apart from it.
struct WireFacts {
  bool is_whole = true;            // Every field, also of submessages, ends where it should.
  bool has_group = false;          // A field of the wire type that no message of the contract has.
  bool are_values_valid = true;    // Strings are UTF-8, and packed numbers are whole.
  std::int64_t unknown_count = 0;  // Fields that the type lacks, or has with another wire type.
};
WireFacts FactsOf(const google::protobuf::Descriptor& type, const std::string& bytes);

}  // namespace softlookup::fuzz

#endif  // SOFTLOOKUP_TESTS_FUZZ_WIRE_FACTS_H_
