#include "client/tool/append_flags.h"

#include "client/output/vocabulary.h"
#include "softlookup/v1/row.pb.h"

namespace softlookup::tool {
namespace {

using output::Words;

constexpr std::uint32_t kBatchRowsMax = 65536;  // The server's default of --max-append-rows.

}  // namespace

void AddAppendFlags(CLI::App* command, AppendFlags* flags) {
  CLI::Option* ids =
      command
          ->add_option("--ids", flags->ids,
                       "File with one line per row: its id, or - if it has none (default: no ids)")
          ->type_name("FILE");
  command
      ->add_option("--on-conflict", flags->on_conflict,
                   "If a row has the id: fail (default), skip the new row, or replace the old one "
                   "and its labels")
      ->check(CLI::IsMember(Words<v1::OnConflict>()))
      ->needs(ids);
  command
      ->add_option("--labels", flags->labels,
                   "File with one line per row: its labels, comma-separated; a quoted one is JSON "
                   "(default: no labels)")
      ->type_name("FILE");
  command
      ->add_option("--batch-rows", flags->batch_rows,
                   "Most rows per request; a request has fewer if its rows would take more than "
                   "16 MiB")
      ->check(CLI::Range(1u, kBatchRowsMax))
      ->capture_default_str();
  command
      ->add_option(
          "--acknowledge", flags->acknowledge,
          "Wait until rows are synced to disk (durable; default) or visible to lookups (applied)")
      ->check(CLI::IsMember(Words<v1::Acknowledge>()));
  command
      ->add_option("--writer", flags->writer,
                   "Name of this input; the same command, run again, appends only missing rows "
                   "(default: none)")
      ->type_name("NAME");
  command
      ->add_option("--skip-rows", flags->skip_rows,
                   "Leave out the first N rows of the input and of its --ids and --labels (default "
                   "0)")
      ->type_name("N")
      ->excludes("--writer");
}

}  // namespace softlookup::tool
