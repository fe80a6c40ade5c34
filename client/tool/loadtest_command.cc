#include <unistd.h>

#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/terminal_text.h"
#include "client/cpp/address.h"
#include "client/cpp/status_macros.h"
#include "client/loadtest/connections.h"
#include "client/loadtest/evidence.h"
#include "client/loadtest/find_max.h"
#include "client/loadtest/html_report.h"
#include "client/loadtest/load_report.h"
#include "client/loadtest/progress_text.h"
#include "client/loadtest/report_json.h"
#include "client/loadtest/run_load.h"
#include "client/loadtest/summary.h"
#include "client/loadtest/verifier.h"
#include "client/output/figure_text.h"
#include "client/output/json.h"
#include "client/output/progress_line.h"
#include "client/tool/command.h"
#include "client/tool/exit_code.h"
#include "client/tool/interrupt.h"
#include "client/tool/loadtest_flags.h"
#include "client/tool/whole_file.h"
#include "client/tool/whole_store.h"

namespace softlookup::tool {
namespace {

using cli::TerminalText;
using loadtest::LoadReport;
using output::Json;
using output::PrintJson;

constexpr absl::Duration kTimeout = absl::Seconds(10);  // Deadline of a call without --timeout.

// One load test, from the stores to the report.
class Loadtest {
 public:
  Loadtest(const LoadtestFlags& flags, const Session& session, LoadtestPlan plan,
           const std::string& version)
      : flags_(flags),
        session_(session),
        plan_(std::move(plan)),
        line_(stderr, flags.progress || isatty(STDERR_FILENO)) {
    report_.version = version;
  }

  absl::Status Run() {
    CLIENT_RETURN_IF_ERROR(CheckWritable(flags_.json));
    CLIENT_RETURN_IF_ERROR(CheckWritable(flags_.report));
    CLIENT_ASSIGN_OR_RETURN(Client client, session_.Connect());
    client_.emplace(std::move(client));
    CLIENT_RETURN_IF_ERROR(FindStores(&*client_));
    CLIENT_RETURN_IF_ERROR(Measure());
    line_.Clear();
    // Write the reports first, because deleting the stores takes long if the server is gone.
    const absl::Status written = WriteReports();
    const absl::Status deleted = DeleteStores();
    line_.Clear();
    const absl::Status status = written.ok() ? VerdictStatus() : written;
    if (status.ok() || deleted.ok()) return status.ok() ? deleted : status;
    return Annotate(status, std::string(deleted.message()));
  }

 private:
  loadtest::RowSource Source() const { return {plan_.key_dim, plan_.value_dim, flags_.seed}; }

  absl::Status FindStores(Client* client) {
    if (flags_.stores_named.empty()) return MakeStores(client);
    for (const std::string& name : flags_.stores_named) {
      CLIENT_ASSIGN_OR_RETURN(const v1::Store store, GetWholeStore(name, client));
      if (names_.empty()) {
        plan_.key_dim = store.key_dim();
        plan_.value_dim = store.value_dim();
      } else if (store.key_dim() != plan_.key_dim || store.value_dim() != plan_.value_dim) {
        return UsageError(absl::StrCat("--store ", name, " has other dimensions than ",
                                       names_.front(), "; a load test's stores have the same"));
      }
      names_.push_back(name);
    }
    return absl::OkStatus();
  }

  absl::Status MakeStores(Client* client) {
    const std::uint64_t rows = plan_.stores.rows * plan_.stores.count;
    CLIENT_ASSIGN_OR_RETURN(
        own_stores_,
        loadtest::TestStores::Make(
            plan_.stores, Source(), client, guard_.interrupted(), [&](std::uint64_t filled) {
              line_.Show(absl::StrCat("filling ", output::CountText(filled), " of ",
                                      output::CountText(rows), " ", output::NounText(rows, "row")));
            }));
    names_ = own_stores_->names();
    return absl::OkStatus();
  }

  absl::Status Measure() {
    CLIENT_ASSIGN_OR_RETURN(const loadtest::Traffic traffic,
                            loadtest::Traffic::Make(plan_.traffic, Source(), names_));
    CLIENT_ASSIGN_OR_RETURN(const Credentials credentials, session_.ReadCredentials());
    CLIENT_ASSIGN_OR_RETURN(
        const loadtest::Connections connections,
        loadtest::Connections::Open(session_.server, static_cast<int>(flags_.connections),
                                    plan_.load.timeout, credentials));
    loadtest::Evidence evidence(names_.size());
    const loadtest::LoadTarget target = {
        .connections = &connections,
        .traffic = &traffic,
        .evidence = flags_.verify ? &evidence : nullptr,
        .answers_to_keep = static_cast<int>(flags_.verify_answers),
        .writer_prefix = absl::StrCat("loadtest-", absl::Hex(std::random_device()()), "-"),
        .interrupted = &guard_.interrupted(),
        .progress = [&](const loadtest::Progress& progress) {
          line_.Show(loadtest::ProgressText(progress));
        }};
    report_.server = session_.server;
    report_.parameters = ParametersOf(flags_, plan_);
    report_.fail_if = plan_.fail_if;
    if (flags_.find_max) {
      Search(target);
    } else {
      report_.result = loadtest::RunLoad(plan_.load, target);
    }
    if (flags_.verify) Verify(&evidence);
    return absl::OkStatus();
  }

  void Search(const loadtest::LoadTarget& target) {
    const bool shown = !session_.json;
    if (shown) loadtest::PrintStepTitle(session_.out);
    report_.objectives = flags_.slo;
    report_.search = loadtest::FindMax(plan_.load, target, plan_.objectives, [&](const auto& step) {
      line_.Clear();
      if (shown) loadtest::PrintStep(step, session_.out);
    });
    const loadtest::FindMaxResult& search = report_.search;
    if (search.best.has_value()) {
      report_.result = search.steps[*search.best].result;
    } else if (!search.steps.empty()) {
      report_.result = search.steps.back().result;
    }
    report_.result.interrupted = search.interrupted;
    if (shown) *session_.out << "\n";
  }

  void Verify(loadtest::Evidence* evidence) {
    line_.Show("verifying");
    // The signal that ended the run must not also stop the verification. After Rearm(), only
    // another signal stops it.
    if (report_.result.interrupted) guard_.Rearm();
    report_.verification =
        loadtest::Verify(Source(),
                         {.filled_rows = plan_.stores.rows,
                          .storage = plan_.stores.storage,
                          .queries = plan_.traffic.queries,
                          .append_rows = plan_.traffic.append_rows,
                          .weights = loadtest::WeightsAskedFor(plan_.traffic.attention),
                          .max_error = plan_.traffic.attention.max_error()},
                         evidence->TakeAnswers(), evidence->TakeAppends(), &guard_.interrupted());
  }

  absl::Status DeleteStores() {
    if (own_stores_ == nullptr || flags_.keep) return absl::OkStatus();
    line_.Show("deleting stores");
    return own_stores_->Delete();
  }

  absl::Status WriteReports() {
    const Json json = loadtest::ReportJson(report_);
    if (session_.json) {
      PrintJson(json, session_.out);
    } else {
      loadtest::PrintSummary(report_, session_.out);
      if (flags_.keep) {
        *session_.out << "kept: " << TerminalText(absl::StrJoin(names_, " ")) << "\n";
      }
    }
    if (!flags_.json.empty()) {
      CLIENT_RETURN_IF_ERROR(
          WriteFile(flags_.json, json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n"));
    }
    if (flags_.report.empty()) return absl::OkStatus();
    return WriteFile(flags_.report, loadtest::HtmlReport(report_));
  }

  absl::Status VerdictStatus() const {
    const std::vector<loadtest::Finding> findings = report_.findings();
    if (findings.empty()) return absl::OkStatus();
    const loadtest::Finding& worst = findings.front();
    switch (worst.verdict) {
      case loadtest::Verdict::kInterrupted:
        return absl::CancelledError(worst.text);
      case loadtest::Verdict::kNoneOk:
        return absl::Status(CodeOfNoneOk(), worst.text);
      case loadtest::Verdict::kInvalid:
        return InvalidFiguresError(absl::StrCat("invalid: ", worst.text));
      default:
        return MissedError(worst.text);
    }
  }

  // Returns the lowest status code among the failed calls; kUnknown if no call failed.
  absl::StatusCode CodeOfNoneOk() const {
    const auto& messages = report_.result.messages;
    if (messages.empty()) return absl::StatusCode::kUnknown;
    return static_cast<absl::StatusCode>(messages.begin()->first);
  }

  const LoadtestFlags& flags_;
  const Session& session_;
  LoadtestPlan plan_;
  InterruptGuard guard_;
  output::ProgressLine line_;
  std::vector<std::string> names_;
  std::optional<Client> client_;  // Declared before own_stores_, whose destructor uses the client.
  std::unique_ptr<loadtest::TestStores> own_stores_;
  LoadReport report_;
};

absl::Status RunLoadtest(const LoadtestFlags& flags, const Session& session,
                         const std::string& version) {
  if (client_internal::SplitServers(session.server).size() > 1) {
    return UsageError(
        "loadtest measures one server, but --server or SOFTLOOKUP_SERVER names several");
  }
  const absl::Duration timeout =
      session.timeout_s.has_value() ? absl::Seconds(*session.timeout_s) : kTimeout;
  CLIENT_ASSIGN_OR_RETURN(LoadtestPlan plan, PlanOf(flags, timeout));
  return Loadtest(flags, session, std::move(plan), version).Run();
}

}  // namespace

void AddLoadtestCommand(CLI::App* app, Session* session) {
  auto flags = std::make_shared<LoadtestFlags>();
  CLI::App* loadtest =
      app->add_subcommand("loadtest", "Measure the latency and the rate of a server under load");
  loadtest->footer(
      "Works on stores of its own unless --store names some. An open loop (--rate) sends each\n"
      "call when it is due, as many independent users do. A closed loop (--concurrency) sends the\n"
      "next call only when one has ended, so it sends fewer calls to a server that stalls.\n"
      "Examples:\n"
      "  softlookup loadtest --rate 2000 --mix lookup=90,append=10 --report load.html\n"
      "  softlookup loadtest --find-max --slo p99=20ms --rows 100000 --dim 128\n"
      "  softlookup loadtest --rate 500 --verify \\\n"
      "    --fail-if 'p99>20ms' --fail-if 'errors>0'");
  AddLoadtestFlags(loadtest, flags.get());
  loadtest->callback(
      [=] { session->run = [=] { return RunLoadtest(*flags, *session, app->version()); }; });
}

}  // namespace softlookup::tool
