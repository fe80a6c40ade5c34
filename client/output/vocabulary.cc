#include "client/output/vocabulary.h"

#include <google/protobuf/descriptor.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace softlookup::output {
namespace {

constexpr absl::string_view kUnspecified = "UNSPECIFIED";

}  // namespace

std::string WordOf(const google::protobuf::EnumDescriptor* type, int number) {
  if (number == 0) return "default";
  const auto* value = type->FindValueByNumber(number);
  if (value == nullptr) return absl::StrCat(number);  // Only a newer server sends such a value.
  const std::size_t prefix = type->FindValueByNumber(0)->name().size() - kUnspecified.size();
  return absl::StrReplaceAll(absl::AsciiStrToLower(value->name().substr(prefix)), {{"_", "-"}});
}

std::vector<std::string> WordsOf(const google::protobuf::EnumDescriptor* type) {
  std::vector<std::string> words;
  for (int i = 0; i < type->value_count(); ++i) {
    if (type->value(i)->number() != 0) words.push_back(WordOf(type, type->value(i)->number()));
  }
  return words;
}

int NumberOf(const google::protobuf::EnumDescriptor* type, const std::string& word) {
  for (int i = 0; i < type->value_count(); ++i) {
    const int number = type->value(i)->number();
    if (number != 0 && WordOf(type, number) == word) return number;
  }
  return 0;
}

}  // namespace softlookup::output
