// softmax(Q K^T / sqrt(d)) V as two products of OpenBLAS and a softmax between them.
//   openblas_attention T N d [repetitions=7] [threads=2]
// Prints a line as the other peers do: median milliseconds and GFLOP/s (4*T*N*d).
#include <cblas.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <thread>
#include <vector>

extern "C" void openblas_set_num_threads(int);

namespace {

std::vector<float> NormalFloats(std::int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> floats(static_cast<std::size_t>(count));
  for (float& component : floats) component = normal(generator);
  return floats;
}

// The weights of a part of a row, not yet normalised; returns their sum.
float Weigh(float* logits, std::int64_t count, float logit_max) {
  float sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    logits[i] = std::exp(logits[i] - logit_max);
    sum += logits[i];
  }
  return sum;
}

class Attention {
 public:
  Attention(int query_count, int row_count, int dim, int thread_count)
      : query_count_(query_count),
        row_count_(row_count),
        dim_(dim),
        thread_count_(thread_count),
        queries_(NormalFloats(std::int64_t{query_count} * dim, 1)),
        keys_(NormalFloats(std::int64_t{row_count} * dim, 2)),
        values_(NormalFloats(std::int64_t{row_count} * dim, 3)),
        logits_(static_cast<std::size_t>(query_count) * row_count),
        answers_(queries_.size()) {}

  void Run() {
    const float scale = 1 / std::sqrt(static_cast<float>(dim_));
    if (query_count_ == 1) {
      cblas_sgemv(CblasRowMajor, CblasNoTrans, row_count_, dim_, scale, keys_.data(), dim_,
                  queries_.data(), 1, 0, logits_.data(), 1);
    } else {
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, query_count_, row_count_, dim_, scale,
                  queries_.data(), dim_, keys_.data(), dim_, 0, logits_.data(), row_count_);
    }
    std::vector<float> weight_sums(static_cast<std::size_t>(query_count_));
    // Queries on all threads; a lone one is short beside its products.
    const int thread_count = std::min(thread_count_, query_count_);
    const auto softmax = [&](int thread) {
      for (int t = thread; t < query_count_; t += thread_count) {
        float* logits = logits_.data() + static_cast<std::size_t>(t) * row_count_;
        weight_sums[t] = Weigh(logits, row_count_, *std::max_element(logits, logits + row_count_));
      }
    };
    std::vector<std::thread> threads;
    for (int thread = 1; thread < thread_count; ++thread) threads.emplace_back(softmax, thread);
    softmax(0);
    for (std::thread& thread : threads) thread.join();
    if (query_count_ == 1) {
      cblas_sgemv(CblasRowMajor, CblasTrans, row_count_, dim_, 1, values_.data(), dim_,
                  logits_.data(), 1, 0, answers_.data(), 1);
    } else {
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, query_count_, dim_, row_count_, 1,
                  logits_.data(), row_count_, values_.data(), dim_, 0, answers_.data(), dim_);
    }
    for (int t = 0; t < query_count_; ++t) {
      for (int i = 0; i < dim_; ++i) answers_[t * dim_ + i] /= weight_sums[t];
    }
  }

 private:
  const int query_count_;
  const int row_count_;
  const int dim_;
  const int thread_count_;
  const std::vector<float> queries_;
  const std::vector<float> keys_;
  const std::vector<float> values_;
  std::vector<float> logits_;
  std::vector<float> answers_;
};

}  // namespace

int main(int argc, char** argv) {
  const auto argument = [&](int index, int otherwise) {
    return argc > index ? std::atoi(argv[index]) : otherwise;
  };
  const int query_count = argument(1, 0), row_count = argument(2, 0), dim = argument(3, 0);
  const int repetitions = argument(4, 7), thread_count = argument(5, 2);
  if (std::min({query_count, row_count, dim, repetitions, thread_count}) < 1) {
    std::fprintf(stderr, "usage: openblas_attention T N d [repetitions] [threads]\n");
    return 2;
  }
  openblas_set_num_threads(thread_count);
  Attention attention(query_count, row_count, dim, thread_count);
  attention.Run();
  std::vector<double> milliseconds;
  for (int i = 0; i < repetitions; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    attention.Run();
    milliseconds.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
            .count());
  }
  std::sort(milliseconds.begin(), milliseconds.end());
  const double median_ms = milliseconds[milliseconds.size() / 2];
  std::printf("peer=openblas T=%d N=%d d=%d threads=%d median_ms=%.3f gflops=%.1f\n", query_count,
              row_count, dim, thread_count, median_ms,
              4e-6 * query_count * row_count * dim / median_ms);
}
