// Lookups: judged by what they have to answer, and by what they answered before.
#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/exactness/lookup_maker.h"
#include "tests/exactness/session.h"
#include "tests/exactness/wire_matrix.h"

namespace softlookup::exactness {
namespace {

constexpr std::size_t kRememberedMax = 48;

std::string Describe(const v1::LookupRequest& request) {
  v1::LookupRequest brief = request;
  brief.clear_queries();
  brief.clear_store();
  return absl::StrCat("Lookup of ", request.queries().rows(), " queries {",
                      brief.ShortDebugString(), "}");
}

// The bits of one query's part of an answer.
std::string BitsOf(const v1::LookupResponse& response, const std::vector<float>& values,
                   std::size_t query, std::size_t value_dim, std::size_t num_heads) {
  std::string bits(reinterpret_cast<const char*>(values.data() + query * value_dim),
                   value_dim * sizeof(float));
  for (std::size_t i = query * num_heads; i < (query + 1) * num_heads; ++i) {
    const int index = static_cast<int>(i);
    bits += response.stats(index).SerializeAsString();
    if (response.weights_size() > 0) bits += response.weights(index).SerializeAsString();
  }
  return bits;
}

// Whether an answer has a part for each query.
bool HasShape(const KeptStore& store, const v1::LookupRequest& request,
              const v1::LookupResponse& response, const std::vector<float>& values) {
  const std::int64_t queries = request.queries().rows();
  const std::int64_t parts = queries * store.num_heads();
  const bool lists = request.options().weights() == v1::WEIGHTS_MODE_TOP ||
                     request.options().weights() == v1::WEIGHTS_MODE_ALL;
  return static_cast<std::int64_t>(values.size()) == queries * store.value_dim() &&
         response.values().rows() == request.queries().rows() &&
         response.values().cols() == store.config().value_dim() &&
         (response.values().values_size() > 0) == (request.queries().values_size() > 0) &&
         response.stats_size() == parts && response.weights_size() == (lists ? parts : 0) &&
         response.tag() == request.tag();
}

// Query `query` of a lookup as a lookup of its own.
v1::LookupRequest Alone(const v1::LookupRequest& request, const KeptStore& store, Draw& draw,
                        std::size_t query) {
  const std::vector<float> queries = FloatsOf(request.queries());
  const auto begin = queries.begin() + static_cast<std::ptrdiff_t>(query) * store.key_dim();
  v1::LookupRequest alone = request;
  *alone.mutable_queries() =
      MatrixOf(draw, std::vector<float>(begin, begin + store.key_dim()), store.key_dim());
  if (request.options().causal()) {
    alone.mutable_options()->set_causal_offset(request.options().causal_offset() + query);
  }
  return alone;
}

}  // namespace

struct Session::Landing {
  std::mutex mutex;
  std::condition_variable landed;
  std::size_t in_flight = 0;

  void Wait() {
    std::unique_lock lock(mutex);
    landed.wait(lock, [this] { return in_flight == 0; });
  }
};

std::vector<std::unique_ptr<Session::Flight>> Session::Launch(
    std::vector<v1::LookupRequest> requests, Landing& landing) {
  std::vector<std::unique_ptr<Flight>> flights;
  landing.in_flight = requests.size();
  for (v1::LookupRequest& request : requests) {
    flights.push_back(std::make_unique<Flight>());
    Flight& flight = *flights.back();
    flight.request = std::move(request);
    stub_->async()->Lookup(&flight.context, &flight.request, &flight.response,
                           [&flight, &landing](const grpc::Status& status) {
                             flight.status = status;
                             const std::lock_guard lock(landing.mutex);
                             if (--landing.in_flight == 0) landing.landed.notify_all();
                           });
  }
  return flights;
}

void Session::Check(OneStore& store, const v1::LookupRequest& request, const grpc::Status& status,
                    const v1::LookupResponse& response, bool remembers) {
  const KeptStore& kept = store.kept;
  ++counts_.lookups;
  if (!RequireOk(kept, status, Describe(request))) return;
  const std::vector<float> values = FloatsOf(response.values());
  if (!HasShape(kept, request, response, values) ||
      response.row_count() != kept.RowCountAt(response.revision()) ||
      response.revision() < request.min_revision()) {
    return Fail(kept, Describe(request), "the answer has another shape, revision or tag");
  }
  JudgeAnswer(kept, request, response);
  if (!remembers || response.revision() != kept.revision()) return;
  Remembered lookup{.store = &store,
                    .request = request,
                    .revision = response.revision(),
                    .operation = operation_};
  for (std::size_t query = 0; query < request.queries().rows(); ++query) {
    lookup.bits.push_back(BitsOf(response, values, query, kept.value_dim(), kept.num_heads()));
  }
  if (remembered_.size() == kRememberedMax) remembered_.erase(remembered_.begin());
  remembered_.push_back(std::move(lookup));
}

void Session::JudgeAnswer(const KeptStore& store, const v1::LookupRequest& request,
                          const v1::LookupResponse& response) {
  const std::vector<float> queries = FloatsOf(request.queries());
  const std::vector<float> values = FloatsOf(response.values());
  const std::int64_t num_heads = store.num_heads();
  for (std::uint32_t query = 0; query < request.queries().rows(); ++query) {
    for (std::int64_t head = 0; head < num_heads; ++head) {
      const std::int64_t index = query * num_heads + head;
      const Question question{.store = &store,
                              .request = &request,
                              .query = &queries[index * (store.key_dim() / num_heads)],
                              .query_index = query,
                              .head = head,
                              .revision = response.revision()};
      const int part = static_cast<int>(index);
      Judge judge(question, response.stats(part), &values[index * (store.value_dim() / num_heads)],
                  response.weights_size() > 0 ? &response.weights(part) : nullptr, tally_);
      const std::vector<std::string> verdict = judge.Verdict();
      if (verdict.empty()) continue;
      Fail(store, Describe(request),
           absl::StrCat(
               "query ", query, ", head ", head, " at revision ", response.revision(), " {",
               response.stats(part).ShortDebugString(), "}: ", verdict.front(),
               verdict.size() > 1 ? absl::StrCat(" (and ", verdict.size() - 1, " more)") : ""));
    }
  }
}

void Session::Compare(const Remembered& before, const v1::LookupResponse& response,
                      std::size_t first, const std::string& how) {
  const KeptStore& store = before.store->kept;
  const std::vector<float> values = FloatsOf(response.values());
  const auto count = static_cast<std::size_t>(response.values().rows());
  if (response.revision() != before.revision || count == 0 || first + count > before.bits.size() ||
      response.stats_size() != static_cast<int>(count) * store.num_heads()) {
    return Fail(store, Describe(before.request), "an answer " + how + " has another shape");
  }
  for (std::size_t query = 0; query < count; ++query) {
    ++tally_.comparisons;
    if (BitsOf(response, values, query, store.value_dim(), store.num_heads()) ==
        before.bits[first + query]) {
      continue;
    }
    Fail(store, Describe(before.request),
         absl::StrCat("query ", first + query, " of operation ", before.operation,
                      " has other bits ", how));
  }
}

void Session::RepeatAlone() {
  for (int i = 0; i < 12 && !remembered_.empty(); ++i) {
    const Remembered& before =
        remembered_[draw_.Int(0, static_cast<std::int64_t>(remembered_.size()) - 1)];
    const auto query =
        static_cast<std::size_t>(draw_.Int(0, static_cast<std::int64_t>(before.bits.size()) - 1));
    const v1::LookupRequest request = Alone(before.request, before.store->kept, draw_, query);
    v1::LookupResponse response;
    grpc::ClientContext context;
    ++counts_.alone;
    if (RequireOk(before.store->kept, stub_->Lookup(&context, request, &response),
                  Describe(request))) {
      Compare(before, response, query, "alone");
    }
  }
}

void Session::RepeatTogether(const std::string& how) {
  if (remembered_.empty()) return;
  // Most come more than once, so that some share a pass over the rows.
  std::vector<const Remembered*> lookups, streamed;
  for (const Remembered& lookup : remembered_) {
    lookups.push_back(&lookup);
    if (draw_.Coin()) lookups.push_back(&lookup);
    if (draw_.Chance(0.3)) streamed.push_back(&lookup);
  }
  for (std::size_t i = lookups.size(); i > 1; --i) {
    std::swap(lookups[i - 1], lookups[draw_.Int(0, static_cast<std::int64_t>(i) - 1)]);
  }
  counts_.together += lookups.size() + streamed.size();
  std::vector<v1::LookupRequest> requests;
  for (const Remembered* lookup : lookups) requests.push_back(lookup->request);
  Landing landing;
  const auto flights = Launch(std::move(requests), landing);
  RepeatOnStream(streamed, how);
  landing.Wait();
  for (std::size_t i = 0; i < flights.size(); ++i) {
    if (RequireOk(lookups[i]->store->kept, flights[i]->status, Describe(lookups[i]->request))) {
      Compare(*lookups[i], flights[i]->response, 0, how);
    }
  }
}

void Session::RepeatOnStream(const std::vector<const Remembered*>& lookups,
                             const std::string& how) {
  grpc::ClientContext context;
  const auto stream = stub_->StreamLookup(&context);
  std::thread writer([&] {
    for (const Remembered* lookup : lookups) {
      if (!stream->Write(lookup->request)) break;
    }
    stream->WritesDone();
  });
  v1::LookupResponse response;
  std::size_t next = 0;
  while (stream->Read(&response)) {
    if (next == lookups.size()) break;
    const Remembered& lookup = *lookups[next++];
    if (response.has_error()) {
      Fail(lookup.store->kept, Describe(lookup.request), response.error().ShortDebugString());
    } else {
      Compare(lookup, response, 0, how + ", on a stream");
    }
  }
  writer.join();
  const grpc::Status status = stream->Finish();
  if (!status.ok() || next != lookups.size()) {
    Fail(absl::StrCat("a stream of ", lookups.size(), " lookups ended after ", next, ": ",
                      status.error_message()));
  }
}

void Session::LookUpBesideWrite(OneStore& store) {
  std::vector<v1::LookupRequest> requests;
  for (std::int64_t i = draw_.Int(2, 6); i > 0; --i) {
    requests.push_back(MakeLookup(store.maker, store.kept));
  }
  counts_.beside_writes += requests.size();
  Landing landing;
  const auto flights = Launch(std::move(requests), landing);
  if (draw_.Chance(0.7)) {
    Append(store, draw_.Int(1, 60));
  } else {
    Delete(store);
  }
  landing.Wait();
  for (const auto& flight : flights) {
    // Which revision answers depends on who came first. Were it remembered, later draws would, too.
    Check(store, flight->request, flight->status, flight->response, /*remembers=*/false);
  }
}

}  // namespace softlookup::exactness
