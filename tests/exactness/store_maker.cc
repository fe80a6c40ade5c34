#include "tests/exactness/store_maker.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "tests/exactness/wire_matrix.h"

namespace softlookup::exactness {
namespace {

constexpr const char* kKeysNames[] = {
    "normal",    "clustered", "run",   "duplicate", "dominated", "constant", "zero",
    "subnormal", "huge",      "mixed", "opposite",  "integral",  "sign",     "orthogonal"};
constexpr const char* kValuesNames[] = {"normal", "numbered", "sign", "constant", "large",
                                        "tiny",   "outlier",  "zero", "far"};

template <typename Item, std::size_t count>
Item OneOf(Draw& draw, const Item (&items)[count]) {
  return items[draw.Int(0, count - 1)];
}

double ProductOf(const std::vector<float>& a, const std::vector<float>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

}  // namespace

StoreMaker::StoreMaker(std::uint64_t seed, const std::string& name, bool may_be_cut)
    : draw_(seed),
      keys_(static_cast<Keys>(draw_.Int(0, static_cast<int>(Keys::kCount) - 1))),
      values_(static_cast<Values>(draw_.Int(0, static_cast<int>(Values::kCount) - 1))) {
  config_.set_name(name);
  MakeShape(may_be_cut);
  // Lookups can leave out rows of a large store. Mostly such a store gets keys of unequal weights.
  if (is_large_ && draw_.Coin()) {
    keys_ = OneOf(draw_, {Keys::kNormal, Keys::kClusters, Keys::kRuns, Keys::kDominated,
                          Keys::kMixedNorms, Keys::kSigns});
  }
  is_tight_ = is_large_ && config_.num_heads() == 1 && draw_.Chance(0.15);
  if (is_tight_) {
    keys_ = Keys::kSigns;
    config_.set_storage_type(v1::ELEMENT_TYPE_FLOAT32);
  }
  is_variant_ = draw_.Coin();
  has_ids_ = draw_.Chance(0.3);
  has_labels_ = draw_.Chance(0.3);
  const auto key_dim = static_cast<double>(config_.key_dim());
  scale_ = std::pow(key_dim, OneOf(draw_, {0.0, -0.25, -0.5}));
  if (keys_ == Keys::kHuge) scale_ = 1e18 / std::sqrt(key_dim);
  if (keys_ == Keys::kSigns) scale_ = std::exp2(draw_.Int(-3, 1));
  if (keys_ == Keys::kIntegers) scale_ = 1;
  aim_ = Normals(scale_);
  if (keys_ == Keys::kSigns) {
    for (float& component : aim_) component = std::copysign(static_cast<float>(scale_), component);
  }
  for (int i = 0; i < 12; ++i) centres_.push_back(Normals(scale_));
  run_rows_ = static_cast<std::size_t>(draw_.Int(100, 3000));
  // In units of the products' deviation: some tenths of all keys are beyond, or hardly any.
  aim_margin_ = draw_.Real(1, 3.5) * scale_ * std::sqrt(ProductOf(aim_, aim_));
  if (is_large_ && draw_.Chance(0.3)) values_ = Values::kFarApart;
  if (is_tight_) values_ = Values::kFarApart;
  constant_value_ = draw_.Normal(config_.value_dim());
  if (draw_.Chance(0.8)) config_.set_score(static_cast<v1::Score>(draw_.Int(1, v1::Score_MAX)));
  if (draw_.Chance(0.5)) config_.set_temperature(MakeTemperature());
  if (draw_.Chance(0.4)) MakeMemories();
}

void StoreMaker::MakeShape(bool may_be_cut) {
  const double how = draw_.Real(0, 1);
  std::int64_t heads = 1, key_dim = 0, value_dim = 0, rows = 0;
  is_large_ = how < (may_be_cut ? 0.85 : 0.4);
  if (may_be_cut && is_large_) {  // A range is eight blocks or more.
    const bool has_small_blocks = draw_.Chance(0.3);
    key_dim = has_small_blocks ? draw_.Int(128, 700) : draw_.Int(32, 48);
    value_dim = draw_.Int(1, 4);
    rows = has_small_blocks ? draw_.Int(1000, 9000) : draw_.Int(8192, 60'000);
  } else if (is_large_) {  // Blocks with sketches, so that lookups look twice.
    key_dim = draw_.Chance(0.4) ? OneOf(draw_, {32, 48, 64, 96, 128}) : draw_.Int(32, 100);
    value_dim = draw_.Int(1, 8);
    rows = draw_.Chance(0.3) ? OneOf(draw_, {4095, 4096, 4097, 5120}) : draw_.Int(4096, 6500);
    if (draw_.Chance(0.08)) {  // More blocks than are merged at once.
      key_dim = draw_.Int(32, 48);
      rows = draw_.Int(8192, 10'500);
    }
  } else if (how < 0.6) {
    key_dim = draw_.Int(1, 64);
    value_dim = draw_.Int(1, 16);
    rows = OneOf(draw_, {1023, 1024, 1025, 2047, 2048, 2049, 3073});
  } else if (how < 0.9) {
    heads = draw_.Chance(0.6) ? 1 : draw_.Int(2, 4);
    key_dim = heads * OneOf(draw_, {1, 2, 3, 8, 16, 17, 31, 32, 33, 65});
    value_dim = heads * draw_.Int(1, 9);
    rows = draw_.Chance(0.15) ? 0 : draw_.Chance(0.2) ? 1 : draw_.Int(2, 90);
  } else {  // Blocks of fewer rows.
    key_dim = draw_.Int(128, 700);
    value_dim = draw_.Chance(0.5) ? draw_.Int(1, 8) : draw_.Int(100, 300);
    rows = draw_.Int(1, 700);
  }
  if (is_large_ && draw_.Chance(0.1)) heads = 2, key_dim *= 2, value_dim *= 2;
  config_.set_key_dim(static_cast<std::uint32_t>(key_dim));
  config_.set_value_dim(static_cast<std::uint32_t>(value_dim));
  config_.set_num_heads(static_cast<std::uint32_t>(heads));
  const double storage = draw_.Real(0, 1);
  config_.set_storage_type(storage < 0.55  ? v1::ELEMENT_TYPE_FLOAT32
                           : storage < 0.8 ? v1::ELEMENT_TYPE_BFLOAT16
                                           : v1::ELEMENT_TYPE_INT8);
  while (rows > 0) {
    const std::int64_t count = draw_.Chance(0.6) ? rows : draw_.Int(1, rows);
    first_appends_.push_back(count);
    rows -= count;
  }
}

void StoreMaker::MakeMemories() {
  for (int kind = v1::MEMORY_KIND_AVERAGE; kind <= v1::MEMORY_KIND_GATED_AVERAGE; ++kind) {
    if (draw_.Coin()) continue;
    // The gate of a huge key is 0 or 1 by its sign alone.
    const bool is_gated = kind >= v1::MEMORY_KIND_GATED;
    if (is_gated && (keys_ == Keys::kHuge || keys_ == Keys::kMixedNorms)) continue;
    v1::MemorySpec* spec = config_.add_memories();
    spec->set_name(absl::StrCat("kind", kind));
    spec->set_kind(static_cast<v1::MemoryKind>(kind));
    if (kind == v1::MEMORY_KIND_DECAYED_SUM || kind == v1::MEMORY_KIND_DECAYED_AVERAGE) {
      spec->set_decay(draw_.Chance(0.3) ? 0.999 : draw_.Real(0.05, 0.98));
    }
    if (!is_gated) continue;
    const auto cols = static_cast<std::int64_t>(config_.key_dim()) + 1;
    const std::vector<float> gate = draw_.Normal(cols, 0.3);
    spec->mutable_gate()->set_rows(1);
    spec->mutable_gate()->set_cols(static_cast<std::uint32_t>(cols));
    spec->mutable_gate()->set_data(gate.data(), gate.size() * sizeof(float));
  }
}

std::string StoreMaker::description() const {
  return absl::StrCat(config_.name(), " (", v1::ElementType_Name(config_.storage_type()), ", ",
                      config_.key_dim(), " + ", config_.value_dim(), " components, ",
                      config_.num_heads(), " heads, ", kKeysNames[static_cast<int>(keys_)],
                      is_variant_ ? "' keys, " : " keys, ", kValuesNames[static_cast<int>(values_)],
                      " values)");
}

double StoreMaker::MakeTemperature() {
  if (draw_.Chance(0.3)) return 1;
  if (draw_.Chance(0.05)) return OneOf(draw_, {1e-6, 1e6});
  return std::exp(draw_.Real(std::log(1e-3), std::log(30)));
}

std::vector<float> StoreMaker::Normals(double scale) {
  return draw_.Normal(config_.key_dim(), scale);
}

std::vector<float> StoreMaker::MakeKey() {
  ++made_key_count_;
  std::vector<float> key = Normals(scale_);
  const std::size_t dim = key.size();
  const auto times = [&key](double factor) {
    for (float& component : key) component = static_cast<float>(component * factor);
  };
  switch (keys_) {
    case Keys::kNormal:
      if (is_variant_) times(std::exp(draw_.Real(-1, 1)));
      break;
    case Keys::kRuns:
    case Keys::kClusters: {
      const std::vector<float>& centre = keys_ == Keys::kRuns
                                             ? centres_[made_key_count_ / run_rows_ % 12]
                                             : centres_[draw_.Int(0, 7)];
      for (std::size_t i = 0; i < dim; ++i) key[i] = centre[i] + 0.05f * key[i];
      break;
    }
    case Keys::kDuplicates:
      key = centres_[draw_.Int(0, 11)];
      break;
    case Keys::kDominated:
      if (draw_.Chance(0.0005)) {
        key = aim_;
        times(draw_.Real(1, 8));
      }
      break;
    case Keys::kConstant: {
      const double factor = is_variant_ ? 1 : std::exp2(draw_.Int(-2, 2)) * (draw_.Coin() ? 1 : -1);
      key.assign(dim, static_cast<float>(scale_ * factor));
      break;
    }
    case Keys::kZeros:
      if (is_variant_ || draw_.Coin()) key.assign(dim, 0);
      break;
    case Keys::kSubnormal: {
      const bool is_all = is_variant_ || draw_.Chance(0.3);
      for (std::size_t i = 0; i < dim; ++i) {
        const double size = std::trunc(key[i] / scale_ * 2);
        if (is_all || i % 3 == 0) key[i] = static_cast<float>(size * 0x1p-149);
      }
      break;
    }
    case Keys::kHuge:
      break;
    case Keys::kMixedNorms:
      times(std::exp2(is_variant_ ? draw_.Real(-58, 58) : draw_.Real(-6, 3)));
      break;
    case Keys::kOpposite:
      if (last_key_.empty()) {
        last_key_ = key;
      } else {
        key = std::move(last_key_);
        last_key_.clear();
        times(-1);
      }
      break;
    case Keys::kIntegers:
      for (float& component : key) component = std::nearbyint(component);
      break;
    case Keys::kSigns:
      for (float& component : key) component = std::copysign(static_cast<float>(scale_), component);
      break;
    case Keys::kOrthogonal:
      for (std::size_t i = 0; i + 1 < dim; i += 2) {
        const float factor = key[i] / static_cast<float>(scale_);
        key[i] = factor * aim_[i + 1];
        key[i + 1] = -factor * aim_[i];
      }
      if (dim % 2 != 0) key[dim - 1] = 0;
      break;
    case Keys::kCount:
      break;
  }
  return key;
}

std::vector<float> StoreMaker::MakeValue(const std::vector<float>& key, std::uint64_t position) {
  std::vector<float> value = draw_.Normal(config_.value_dim());
  const auto times = [&value](double factor) {
    for (float& component : value) component = static_cast<float>(component * factor);
  };
  switch (values_) {
    case Values::kNormal:
    case Values::kCount:
      break;
    case Values::kPosition:
      value.back() = static_cast<float>(position) / 4096 - 0.5f;
      break;
    case Values::kSigns:
      for (float& component : value) component = component > 0 ? 1 : -1;
      break;
    case Values::kConstant:
      return constant_value_;
    case Values::kLarge:
      times(is_variant_ ? 1e18 : 1e30);
      break;
    case Values::kTiny:
      times(is_variant_ ? 1e-30 : 1e-42);
      break;
    case Values::kOutlier:
      if (draw_.Chance(0.002)) times(is_variant_ ? 1e4 : 1e12);
      break;
    case Values::kFarApart:
      value.assign(value.size(), ProductOf(key, aim_) >= aim_margin_ ? 1.0f : -1.0f);
      break;
    case Values::kZero:
      if (draw_.Chance(0.9)) times(0);
      break;
  }
  return value;
}

v1::AppendRequest StoreMaker::MakeAppend(std::int64_t count, std::uint64_t rows_before) {
  v1::AppendRequest request;
  request.set_store(config_.name());
  std::vector<float> keys, values;
  for (std::int64_t row = 0; row < count; ++row) {
    const std::vector<float> key = MakeKey();
    const std::vector<float> value = MakeValue(key, rows_before + row);
    keys.insert(keys.end(), key.begin(), key.end());
    values.insert(values.end(), value.begin(), value.end());
    if (has_labels_) {
      v1::RowLabels* labels = request.add_row_labels();
      if (draw_.Coin()) labels->add_labels(draw_.Coin() ? "a" : "b");
      if (draw_.Chance(0.02)) labels->add_labels("few");
    }
  }
  // A repeated id is one that an earlier append has had.
  if (has_ids_ && draw_.Chance(0.9)) {
    const bool repeats = next_id_ > 1 && draw_.Chance(0.4);
    const std::int64_t shared =
        repeats ? draw_.Int(1, std::min<std::int64_t>(count, next_id_ - 1)) : 0;
    const std::uint64_t first = next_id_ - static_cast<std::uint64_t>(shared);
    for (std::int64_t row = 0; row < count; ++row) request.add_ids(3 * (first + row));
    next_id_ = first + static_cast<std::uint64_t>(count);
    request.set_on_conflict(static_cast<v1::OnConflict>(draw_.Int(0, 3)));
  }
  *request.mutable_keys() = MatrixOf(draw_, keys, config_.key_dim());
  *request.mutable_values() = MatrixOf(draw_, values, config_.value_dim());
  return request;
}

v1::RowFilter StoreMaker::MakeFilter(std::uint64_t row_count) {
  v1::RowFilter filter;
  const auto rows = static_cast<std::int64_t>(row_count);
  const auto near_border = [&](std::int64_t low, std::int64_t high) {
    const std::int64_t border = draw_.Int(0, rows / 1024) * 1024 + draw_.Int(-1, 1);
    return border >= low && border <= high && draw_.Coin() ? border : draw_.Int(low, high);
  };
  do {
    filter.Clear();
    if (draw_.Chance(0.4)) filter.set_end(near_border(0, rows));
    const auto end = filter.has_end() ? static_cast<std::int64_t>(filter.end()) : rows;
    if (draw_.Chance(0.4)) filter.set_begin(near_border(0, end));
    if (draw_.Chance(0.2)) filter.set_last(draw_.Int(0, rows + 2));
    if (has_labels_ && draw_.Chance(0.4)) filter.add_any_labels(draw_.Coin() ? "a" : "few");
    if (has_labels_ && draw_.Chance(0.4)) filter.add_no_labels(draw_.Coin() ? "b" : "few");
    if (has_ids_ && draw_.Chance(0.3)) {
      auto* ids = draw_.Coin() ? filter.mutable_ids() : filter.mutable_exclude_ids();
      for (std::int64_t j = draw_.Int(1, 12); j > 0; --j) {
        ids->Add(3 * draw_.Int(1, static_cast<std::int64_t>(next_id_)));
      }
    }
  } while (filter.ByteSizeLong() == 0);
  return filter;
}

std::vector<float> StoreMaker::MakeQuery(const KeptStore& store) {
  const std::vector<float> normals = Normals(scale_);
  std::vector<float> query = normals;
  const std::size_t dim = query.size();
  const double how = draw_.Real(0, 1);
  const float* key = nullptr;
  if (store.row_count() > 0) {
    key = store.key(draw_.Int(0, static_cast<std::int64_t>(store.row_count()) - 1));
  }
  if (how < 0.03) {
    query.assign(dim, 0);
  } else if (how < 0.2 || keys_ == Keys::kIntegers || (keys_ == Keys::kSigns && how < 0.5)) {
    for (float& q : query) {
      if (keys_ == Keys::kIntegers) q = std::nearbyint(q);
      if (keys_ == Keys::kSigns) q = std::copysign(1.0f, q);
    }
  } else if (how < 0.35 && key != nullptr) {
    for (std::size_t i = 0; i < dim; ++i) query[i] = key[i] + 0.3f * normals[i];
  } else if (how < 0.5 && key != nullptr) {
    std::copy(key, key + dim, query.begin());
  } else {
    // Only at the aim itself are values as far apart as their weights are.
    const float noise = how < 0.7 || values_ == Values::kFarApart ? 0 : 0.2f;
    for (std::size_t i = 0; i < dim; ++i) query[i] = aim_[i] + noise * normals[i];
  }
  double factor = 1;
  // Half of the time, products with huge keys are of an ordinary size.
  if (keys_ == Keys::kHuge && draw_.Coin()) factor = 1e-36;
  if (draw_.Chance(0.1)) factor *= -1;
  if (draw_.Chance(0.03)) factor *= std::exp2(draw_.Int(-100, 20));
  for (float& q : query) q = static_cast<float>(q * factor);
  return query;
}

}  // namespace softlookup::exactness
