#include "tests/benchmarks/cluster/single_appends.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace softlookup::testing {

v1::AppendRequest MakeAppend(const std::string& store, std::uint32_t rows, std::uint32_t dim) {
  v1::AppendRequest request;
  request.set_store(store);
  const std::vector<float> components(std::size_t{rows} * dim, 0.25f);
  for (v1::Matrix* const matrix : {request.mutable_keys(), request.mutable_values()}) {
    matrix->set_rows(rows);
    matrix->set_cols(dim);
    matrix->set_data(components.data(), components.size() * sizeof(float));
  }
  return request;
}

double SingleAppends::Times::Quantile(double share) const {
  if (milliseconds.empty()) return 0;
  const auto index = static_cast<std::size_t>(share * static_cast<double>(milliseconds.size()));
  return milliseconds[std::min(index, milliseconds.size() - 1)];
}

SingleAppends::SingleAppends(std::unique_ptr<v1::SoftLookup::Stub> stub,
                             const v1::AppendRequest& row)
    : stub_(std::move(stub)), row_(row), thread_([this] { Run(); }) {}

SingleAppends::~SingleAppends() {
  must_end_ = true;
  thread_.join();
}

SingleAppends::Times SingleAppends::Take() {
  Times taken;
  {
    absl::MutexLock lock(&mutex_);
    taken = std::exchange(times_, {});
  }
  std::ranges::sort(taken.milliseconds);
  return taken;
}

void SingleAppends::Run() {
  while (!must_end_) {
    grpc::ClientContext context;
    v1::AppendResponse response;
    const absl::Time begin = absl::Now();
    const bool is_made = stub_->Append(&context, row_, &response).ok();
    const double milliseconds = absl::ToDoubleMilliseconds(absl::Now() - begin);
    absl::MutexLock lock(&mutex_);
    if (is_made) {
      times_.milliseconds.push_back(milliseconds);
    } else {
      ++times_.failed;
    }
  }
}

}  // namespace softlookup::testing
