#include "client/tool/word_store.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/terminal_text.h"
#include "client/tool/exit_code.h"

namespace softlookup::tool {
namespace {

constexpr char kLabel[] = "encoding";
constexpr char kWords[] = "words";

}  // namespace

absl::Status MarkAsWordStore(v1::Store* store) {
  std::string& label = (*store->mutable_labels())[kLabel];
  if (!label.empty() && label != kWords) {
    return UsageError(absl::StrCat("--words sets the label ", kLabel, "=", kWords, ", but --label ",
                                   kLabel, "=", label, " is given"));
  }
  label = kWords;
  return absl::OkStatus();
}

absl::Status CheckIsWordStore(const v1::Store& store, bool any_store) {
  const auto label = store.labels().find(kLabel);
  if (any_store || (label != store.labels().end() && label->second == kWords)) {
    return absl::OkStatus();
  }
  return UsageError(absl::StrCat(
      cli::TerminalText(store.name()), " has not the label ", kLabel, "=", kWords,
      ", which `store create --words` sets. --words turns each word into a random vector by its "
      "letters. It knows nothing of the word's meaning, so it is noise among other rows. To ask by "
      "the name of a row, see lookup --name. To use --words here all the same, add --any-store"));
}

void AddAnyStoreFlag(CLI::App* command, CLI::Option* words, bool* any_store) {
  command
      ->add_flag("--any-store", *any_store,
                 "With --words: allow a store that was not made by `store create --words`")
      ->needs(words);
}

}  // namespace softlookup::tool
