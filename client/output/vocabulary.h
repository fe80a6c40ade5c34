#ifndef SOFTLOOKUP_CLIENT_OUTPUT_VOCABULARY_H_
#define SOFTLOOKUP_CLIENT_OUTPUT_VOCABULARY_H_

#include <google/protobuf/generated_enum_reflection.h>

#include <string>
#include <vector>

namespace softlookup::tool {

// The words that the command line and the output use for the contract's enums, taken from their
// descriptors: SCORE_SCALED_DOT is "scaled-dot". The unspecified value is "default" and cannot be
// chosen.
std::vector<std::string> WordsOf(const google::protobuf::EnumDescriptor* type);
std::string WordOf(const google::protobuf::EnumDescriptor* type, int number);
// 0, the unspecified value, if there is no such word.
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

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_OUTPUT_VOCABULARY_H_
