#include "client/tool/filter_flags.h"

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

void AddFilterFlags(CLI::App* command, FilterFlags* flags) {
  command->add_option("--begin", flags->begin, "Only rows from this position on (default 0)")
      ->group("Rows");
  command
      ->add_option(
          "--end", flags->end,
          "Only rows at positions below this, at most the row count (default: the row count)")
      ->group("Rows");
  command
      ->add_option(
          "--last", flags->last,
          "Only rows at the last N positions before --end; positions of deleted rows count "
          "(default: all)")
      ->group("Rows");
  AddList(command, "--label", &flags->any_labels,
          "Only rows with at least one of these labels; may be repeated", "LABEL,...")
      ->check(Utf8());
  AddList(command, "--no-label", &flags->no_labels,
          "Only rows with none of these labels; may be repeated", "LABEL,...")
      ->check(Utf8());
  AddList(command, "--id", &flags->ids, "Only rows with one of these ids; may be repeated",
          "ID,...");
  AddList(command, "--exclude-id", &flags->exclude_ids,
          "Only rows with none of these ids; may be repeated", "ID,...");
}

}  // namespace softlookup::tool
