#ifndef SOFTLOOKUP_CLIENT_OUTPUT_VOCABULARY_H_
#define SOFTLOOKUP_CLIENT_OUTPUT_VOCABULARY_H_

#include <google/protobuf/generated_enum_reflection.h>

#include <string>
#include <vector>

namespace softlookup::output {

// The command line and the output use words for the values of the wire contract's enums. The words
// are made from the enums' descriptors: SCORE_SCALED_DOT becomes "scaled-dot".

// Returns the words that a user can choose: those of all values but 0, the unspecified one.
std::vector<std::string> WordsOf(const google::protobuf::EnumDescriptor* type);
// Returns the word for the value `number`. Returns "default" for 0, and the number itself for a
// value that the descriptor lacks.
std::string WordOf(const google::protobuf::EnumDescriptor* type, int number);
// Returns the value for `word`. Returns 0, the unspecified value, if WordsOf() lacks `word`.
int NumberOf(const google::protobuf::EnumDescriptor* type, const std::string& word);

template <typename Enum>
std::vector<std::string> Words() {
  return WordsOf(google::protobuf::GetEnumDescriptor<Enum>());
}

template <typename Enum>
std::string Word(Enum value) {
  return WordOf(google::protobuf::GetEnumDescriptor<Enum>(), value);
}

template <typename Enum>
Enum FromWord(const std::string& word) {
  return static_cast<Enum>(NumberOf(google::protobuf::GetEnumDescriptor<Enum>(), word));
}

}  // namespace softlookup::output

#endif  // SOFTLOOKUP_CLIENT_OUTPUT_VOCABULARY_H_
