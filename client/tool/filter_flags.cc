#include "client/tool/filter_flags.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/terminal_text.h"
#include "client/output/json.h"
#include "client/tool/label_text.h"
#include "client/tool/validators.h"

namespace softlookup::tool {
namespace {

template <typename Element>
CLI::Option* AddList(CLI::App* command, const std::string& flag, std::vector<Element>* list,
                     const std::string& description, const std::string& type_name) {
  return command->add_option(flag, *list, description)
      ->type_name(type_name)
      ->delimiter(',')
      ->allow_extra_args(false)
      ->group("Rows");
}

// Adds an option whose values are labels, as label_text.h describes them.
void AddLabels(CLI::App* command, const std::string& flag, std::vector<std::string>* labels,
               const std::string& description) {
  const auto take = [flag, labels](const std::vector<std::string>& texts) {
    // CLI11 takes a lone {} for no text at all.
    if (texts.empty()) throw CLI::ValidationError(flag, "takes a label");
    for (const std::string& text : texts) {
      const std::optional<std::vector<std::string>> found = SplitLabels(text);
      if (!found.has_value()) {
        throw CLI::ValidationError(flag, absl::StrCat(text, ": ", kQuotedLabelRule));
      }
      // Without its label, an option would choose all rows.
      if (found->empty() || std::find(found->begin(), found->end(), "") != found->end()) {
        throw CLI::ValidationError(flag, "a label must not be empty");
      }
      labels->insert(labels->end(), found->begin(), found->end());
    }
  };
  command->add_option_function<std::vector<std::string>>(flag, take, description)
      ->type_name("LABEL,...")
      ->allow_extra_args(false)
      ->check(Utf8())
      ->group("Rows");
}

}  // namespace

v1::RowFilter FilterFlags::ToProto() const {
  v1::RowFilter filter;
  if (begin.has_value()) filter.set_begin(*begin);
  if (end.has_value()) filter.set_end(*end);
  if (last.has_value()) filter.set_last(*last);
  filter.mutable_any_labels()->Assign(any_labels.begin(), any_labels.end());
  filter.mutable_no_labels()->Assign(no_labels.begin(), no_labels.end());
  filter.mutable_ids()->Assign(ids.begin(), ids.end());
  filter.mutable_exclude_ids()->Assign(exclude_ids.begin(), exclude_ids.end());
  return filter;
}

std::string FilterFlags::NoRowNote(const std::string& store) const {
  FilterFlags others = *this;
  std::vector<std::string> shown;
  const bool by_label = !any_labels.empty();
  if (by_label) {
    for (const std::string& label : any_labels) {
      shown.push_back(cli::TerminalText(output::Json(label).dump()));
    }
    others.any_labels.clear();
  } else {
    for (const std::uint64_t id : ids) shown.push_back(absl::StrCat(id));
    others.ids.clear();
  }
  if (shown.empty()) return "";
  const std::string kind = by_label ? "label" : "id";
  return absl::StrCat("softlookup: no row of ", cli::TerminalText(store),
                      others.any() ? " that the other options choose" : "", " has ",
                      shown.size() == 1 ? "the " + kind + " " : "one of the " + kind + "s ",
                      absl::StrJoin(shown, ", "), "\n");
}

void AddFilterFlags(CLI::App* command, FilterFlags* flags) {
  command->add_option("--begin", flags->begin, "Only rows from this position on (default 0)")
      ->group("Rows");
  command
      ->add_option(
          "--end", flags->end,
          "Only rows at positions below this; more than the row count is refused (default: all)")
      ->group("Rows");
  command
      ->add_option(
          "--last", flags->last,
          "Only rows at the last N positions before --end; positions of deleted rows count "
          "(default: all)")
      ->group("Rows");
  AddLabels(
      command, "--label", &flags->any_labels,
      "Only rows with one of these labels ('\"a,b\"' is one label, in JSON); may be repeated");
  AddLabels(command, "--no-label", &flags->no_labels,
            "Only rows with none of these labels; may be repeated");
  AddList(command, "--id", &flags->ids, "Only rows with one of these ids; may be repeated",
          "ID,...");
  AddList(command, "--exclude-id", &flags->exclude_ids,
          "Only rows with none of these ids; may be repeated", "ID,...");
}

}  // namespace softlookup::tool
