#include "softlookup/similarity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "softlookup/word_encoder.h"

namespace softlookup {
namespace {

using Vector = std::vector<float>;

constexpr Similarity kCosine = Similarity::Cosine();
constexpr Similarity kEuclidean = Similarity::Euclidean();

TEST(SimilarityTest, CosineLooksAtDirectionsOnly) {
  EXPECT_EQ(kCosine(Vector{3, 4}, Vector{4, 3}), 24.0 / 25);
  EXPECT_EQ(kCosine(Vector{3, 4}, Vector{400, 300}), 24.0 / 25);
  EXPECT_EQ(kCosine(Vector{1, 0}, Vector{0, 7}), 0);
  EXPECT_EQ(kCosine(Vector{1, 2}, Vector{-2, -4}), -1);
}

TEST(SimilarityTest, CosineIsZeroIfEitherNormIsZero) {
  EXPECT_EQ(kCosine(Vector{0, 0}, Vector{1, 2}), 0);
  EXPECT_EQ(kCosine(Vector{1, 2}, Vector{0, 0}), 0);
  EXPECT_EQ(kCosine(Vector{0, 0}, Vector{0, 0}), 0);
  EXPECT_EQ(kCosine(Vector{}, Vector{}), 0);
}

TEST(SimilarityTest, EuclideanIsTheDistanceNegated) {
  EXPECT_EQ(kEuclidean(Vector{1, 2}, Vector{4, 6}), -5);
  EXPECT_EQ(kEuclidean(Vector{0, 0}, Vector{0, 0}), 0);
  EXPECT_EQ(kEuclidean(Vector{}, Vector{}), 0);
}

TEST(SimilarityTest, AWordIsMostSimilarToItself) {
  const WordEncoder encoder(64);
  for (const char* word : {"apple", "bread", "cloud", "drum", "eagle"}) {
    const Vector encoding = encoder.Encode(word);
    EXPECT_EQ(kCosine(encoding, encoding), 1) << word;
    EXPECT_EQ(kEuclidean(encoding, encoding), 0) << word;
    EXPECT_LT(kCosine(encoding, encoder.Encode("fig")), 0.6) << word;
    EXPECT_LT(kEuclidean(encoding, encoder.Encode("fig")), -0.6) << word;
  }
}

TEST(SimilarityTest, OnUnitVectorsBothOrderAlike) {
  const WordEncoder encoder(16);
  const Vector query = encoder.Encode("query");
  for (const char* word : {"a", "b", "c", "d"}) {
    const Vector key = encoder.Encode(word);
    EXPECT_NEAR(kEuclidean(query, key), -std::sqrt(2 - 2 * kCosine(query, key)), 1e-6) << word;
  }
}

TEST(SimilarityTest, HoldsAtTheEndsOfFloat32) {
  const float largest = std::numeric_limits<float>::max();
  const float least = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(kCosine(Vector{largest, 0}, Vector{largest, 0}), 1);
  EXPECT_EQ(kCosine(Vector{least, 0}, Vector{least, 0}), 1);
  EXPECT_NEAR(kCosine(Vector{largest, largest}, Vector{least, 0}), std::sqrt(0.5), 1e-15);
  EXPECT_EQ(kEuclidean(Vector{largest}, Vector{-largest}), -2.0 * largest);
}

TEST(SimilarityTest, NamesTheServersScore) {
  EXPECT_EQ(kCosine.score(), v1::SCORE_COSINE);
  EXPECT_EQ(kEuclidean.score(), v1::SCORE_EUCLIDEAN);
}

TEST(SimilarityDeathTest, SizesMustAgree) {
  EXPECT_DEATH(kCosine(Vector{1}, Vector{1, 2}), "");
  EXPECT_DEATH(kEuclidean(Vector{1}, Vector{1, 2}), "");
}

}  // namespace
}  // namespace softlookup
