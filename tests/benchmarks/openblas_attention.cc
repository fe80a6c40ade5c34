// softmax(Q K^T / sqrt(d)) V as two products of OpenBLAS and a softmax between them.
//   openblas_attention T N d [repetitions=7] [threads=2] [folder value_dim]
// With a folder: softmax(Q K^T) V of its files queries.f32, keys.f32 and values.f32, which hold
// little-endian float32. Prints a line as the other peers do: median milliseconds and GFLOP/s
// (2*T*N*(d+value_dim)).
#include <cblas.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <utility>
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

// The floats of the file `name` in `folder`, of which there must be `count`.
std::vector<float> ReadFloats(const std::string& folder, const char* name, std::int64_t count) {
  std::vector<float> floats(static_cast<std::size_t>(count));
  std::ifstream file(folder + "/" + name, std::ios::binary);
  file.read(reinterpret_cast<char*>(floats.data()),
            static_cast<std::streamsize>(floats.size() * sizeof(float)));
  if (!file) {
    std::fprintf(stderr, "openblas_attention: %s/%s has fewer than %lld floats\n", folder.c_str(),
                 name, static_cast<long long>(count));
    std::exit(1);
  }
  return floats;
}

struct Shape {
  int query_count, row_count, dim, value_dim;
};

struct Inputs {
  std::vector<float> queries, keys, values;
  float scale;  // Of the products.
};

Inputs RandomInputs(const Shape& shape) {
  return {.queries = NormalFloats(std::int64_t{shape.query_count} * shape.dim, 1),
          .keys = NormalFloats(std::int64_t{shape.row_count} * shape.dim, 2),
          .values = NormalFloats(std::int64_t{shape.row_count} * shape.value_dim, 3),
          .scale = 1 / std::sqrt(static_cast<float>(shape.dim))};
}

Inputs ReadInputs(const Shape& shape, const std::string& folder) {
  return {
      .queries = ReadFloats(folder, "queries.f32", std::int64_t{shape.query_count} * shape.dim),
      .keys = ReadFloats(folder, "keys.f32", std::int64_t{shape.row_count} * shape.dim),
      .values = ReadFloats(folder, "values.f32", std::int64_t{shape.row_count} * shape.value_dim),
      .scale = 1};
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
  Attention(const Shape& shape, int thread_count, Inputs inputs)
      : query_count_(shape.query_count),
        row_count_(shape.row_count),
        dim_(shape.dim),
        value_dim_(shape.value_dim),
        thread_count_(thread_count),
        scale_(inputs.scale),
        queries_(std::move(inputs.queries)),
        keys_(std::move(inputs.keys)),
        values_(std::move(inputs.values)),
        logits_(static_cast<std::size_t>(query_count_) * row_count_),
        answers_(static_cast<std::size_t>(query_count_) * value_dim_) {}

  void Run() {
    if (query_count_ == 1) {
      cblas_sgemv(CblasRowMajor, CblasNoTrans, row_count_, dim_, scale_, keys_.data(), dim_,
                  queries_.data(), 1, 0, logits_.data(), 1);
    } else {
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, query_count_, row_count_, dim_, scale_,
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
      cblas_sgemv(CblasRowMajor, CblasTrans, row_count_, value_dim_, 1, values_.data(), value_dim_,
                  logits_.data(), 1, 0, answers_.data(), 1);
    } else {
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, query_count_, value_dim_, row_count_,
                  1, logits_.data(), row_count_, values_.data(), value_dim_, 0, answers_.data(),
                  value_dim_);
    }
    for (int t = 0; t < query_count_; ++t) {
      for (int i = 0; i < value_dim_; ++i) answers_[t * value_dim_ + i] /= weight_sums[t];
    }
  }

 private:
  const int query_count_;
  const int row_count_;
  const int dim_;
  const int value_dim_;
  const int thread_count_;
  const float scale_;
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
  const int dim = argument(3, 0);
  const Shape shape{.query_count = argument(1, 0),
                    .row_count = argument(2, 0),
                    .dim = dim,
                    .value_dim = argument(7, dim)};
  const int repetitions = argument(4, 7), thread_count = argument(5, 2);
  const bool has_folder = argc == 8;
  if ((argc > 6 && !has_folder) || std::min({shape.query_count, shape.row_count, dim,
                                             shape.value_dim, repetitions, thread_count}) < 1) {
    std::fprintf(stderr,
                 "usage: openblas_attention T N d [repetitions] [threads] [folder value_dim]\n");
    return 2;
  }
  openblas_set_num_threads(thread_count);
  Attention attention(shape, thread_count,
                      has_folder ? ReadInputs(shape, argv[6]) : RandomInputs(shape));
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
  std::printf("peer=openblas T=%d N=%d d=%d threads=%d median_ms=%.3f gflops=%.1f\n",
              shape.query_count, shape.row_count, dim, thread_count, median_ms,
              2e-6 * shape.query_count * shape.row_count * (dim + shape.value_dim) / median_ms);
}
