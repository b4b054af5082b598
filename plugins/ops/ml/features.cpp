// Operators of ai.onnx.ml on tables of numbers: ArrayFeatureExtractor, Binarizer, FeatureVectorizer, Imputer,
// Normalizer, Scaler.
//
// Binarizer gives 0 for NaN. Normalizer leaves a row whose divisor is 0 as it is; its MAX is the largest
// number, not the largest magnitude.
#include "ml/ml.hpp"

namespace tenon::ops {
namespace {

using namespace tenon::ops::ml;

// ---- ArrayFeatureExtractor ----

void infer_extract(Infer& c) {
  const tn_dtype dtype = c.dtype(0);
  if (!ranked(c, 0, "X", 1) || !c.has_rank(1)) return c.set_unranked(0, dtype);
  auto d = c.dims(0);
  const tn_dim count = c.product(c.dims(1));
  if (d.size() == 1)
    d = {1, count};
  else
    d.back() = count;
  c.set(0, dtype, d);
}

struct ExtractState : Base {
  int64_t rows = 0, features = 0, count = 0, bytes = 0;
};
int run_extract(const tn_kernel_args* a, uint32_t tile, uint32_t) noexcept {
  const auto& s = state<ExtractState>(a);
  const int64_t* index = in<int64_t>(a, 1);
  const char* x = in<char>(a, 0);
  char* y = out<char>(a);
  const Range range = tile_range(s.rows, s.tiles, tile);
  for (int64_t k = 0; k < s.count; ++k)
    if (index[k] < 0 || index[k] >= s.features) {
      char text[160];
      std::snprintf(text, sizeof text,
                    "operand Y holds the index %lld; expected 0 to %lld, as X has %lld features",
                    static_cast<long long>(index[k]), static_cast<long long>(s.features - 1),
                    static_cast<long long>(s.features));
      return run_fail(a, run_index_out_of_range, text);
    }
  for (int64_t r = range.begin; r < range.end; ++r)
    for (int64_t k = 0; k < s.count; ++k)
      std::memcpy(y + (r * s.count + k) * s.bytes, x + (r * s.features + index[k]) * s.bytes,
                  static_cast<size_t>(s.bytes));
  return run_ok;
}
void plan_extract(const PlanView& v, Planned& p) {
  auto s = make_state<ExtractState>(v);
  if (s->in[0].rank() < 1) fail("operand X is a scalar; expected at least one axis of features");
  s->features = s->in[0].dim(-1);
  s->rows = product(s->in[0].dims, 0, s->in[0].dims.size() - 1);
  s->count = s->in[1].count;
  s->bytes = element_bytes(s->in[0].dtype);
  if (s->out[0].count != checked_mul(s->rows, s->count))
    fail(format("the result is planned with shape %s, which does not hold %lld rows of %lld",
                dims_text(s->out[0].dims).c_str(), static_cast<long long>(s->rows),
                static_cast<long long>(s->count)));
  const int64_t rows = s->rows, work = s->out[0].count;
  finish(v, p, run_extract, std::move(s), rows, work);
}

// ---- element by element, with constants for each feature ----

/// Numbers of an attribute: one for all features, or one for each.
std::vector<double> per_feature(Span<const double> values, const char* name, const Shape& x) {
  const int64_t features = x.rank() ? x.dim(-1) : 1;
  const auto n = static_cast<int64_t>(values.size());
  if (n != 1 && n != features)
    fail(format("attribute '%s' has %lld elements; expected 1 or %lld, one for each feature of X", name,
                static_cast<long long>(n), static_cast<long long>(features)));
  return {values.begin(), values.end()};
}

struct FeatureState : Base {
  Load<double> load = nullptr;
  Store<double> store = nullptr;
  std::vector<double> first, second;  // of length 1 or of the features'
  int64_t features = 1;
};
/// y[i] = f(x[i], state, feature of i).
template <double (*F)(double, const FeatureState&, size_t)>
int run_features(const tn_kernel_args* a, uint32_t tile, uint32_t) noexcept {
  const auto& s = state<FeatureState>(a);
  const Range range = tile_range(s.in[0].count, s.tiles, tile, 16);
  double x[block];
  for (int64_t at = range.begin; at < range.end; at += block) {
    const int64_t n = std::min(block, range.end - at);
    s.load(a->inputs[0], at, 1, n, x);
    for (int64_t i = 0; i < n; ++i) x[i] = F(x[i], s, static_cast<size_t>((at + i) % s.features));
    s.store(x, n, a->outputs[0], at);
  }
  return run_ok;
}
std::unique_ptr<FeatureState> feature_state(const PlanView& v) {
  auto s = make_state<FeatureState>(v);
  s->load = loader<double>(s->in[0].dtype);
  s->store = storer<double>(s->out[0].dtype);
  if (s->in[0].rank()) s->features = std::max<int64_t>(s->in[0].dim(-1), 1);
  return s;
}
double of(const std::vector<double>& values, size_t feature) noexcept {
  return values.size() == 1 ? values[0] : values[feature];
}
double scale(double x, const FeatureState& s, size_t k) noexcept {
  return (x - of(s.first, k)) * of(s.second, k);
}
double binarize(double x, const FeatureState& s, size_t) noexcept { return x > s.first[0] ? 1 : 0; }
double impute(double x, const FeatureState& s, size_t k) noexcept {
  const double replaced = s.first[0];
  return x == replaced || (replaced != replaced && x != x) ? of(s.second, k) : x;
}

void infer_scaler(Infer& c) { same_shape(c, 0, 0, TN_FLOAT32); }
void plan_scaler(const PlanView& v, Planned& p) {
  auto s = feature_state(v);
  const double zero = 0, one = 1;
  const auto offset = v.attrs().get_floats("offset"), by = v.attrs().get_floats("scale");
  s->first = per_feature(offset.empty() ? Span<const double>(&zero, 1) : offset, "offset", s->in[0]);
  s->second = per_feature(by.empty() ? Span<const double>(&one, 1) : by, "scale", s->in[0]);
  const int64_t n = s->in[0].count;
  finish(v, p, run_features<scale>, std::move(s), n, n);
}

void infer_same(Infer& c) { same_type(c, 0, 0); }
void plan_binarizer(const PlanView& v, Planned& p) {
  auto s = feature_state(v);
  s->first = {v.attrs().get_float("threshold", 0)};
  const int64_t n = s->in[0].count;
  finish(v, p, run_features<binarize>, std::move(s), n, n);
}

// Integers keep all their bits, so they do not go through float64.
struct ImputeIntegers : Base {
  int64_t replaced = 0, features = 1;
  std::vector<int64_t> values;
};
template <class T>
int run_impute_integers(const tn_kernel_args* a, uint32_t tile, uint32_t) noexcept {
  const auto& s = state<ImputeIntegers>(a);
  const Range range = tile_range(s.in[0].count, s.tiles, tile, 16);
  const T* x = in<T>(a, 0);
  T* y = out<T>(a);
  for (int64_t i = range.begin; i < range.end; ++i)
    y[i] = x[i] != s.replaced
               ? x[i]
               : static_cast<T>(s.values[s.values.size() == 1 ? 0 : static_cast<size_t>(i % s.features)]);
  return run_ok;
}
void plan_imputer(const PlanView& v, Planned& p) {
  const auto attrs = v.attrs();
  const auto floats = attrs.get_floats("imputed_value_floats");
  const auto integers = attrs.get_ints("imputed_value_int64s");
  const bool real = is_float(v.input(0).dtype());
  const char* name = real ? "imputed_value_floats" : "imputed_value_int64s";
  if (real ? floats.empty() : integers.empty())
    fail(format("attribute '%s' is missing; it says what replaces elements of type %s", name,
                dtype_name(v.input(0).dtype())));
  const int64_t n = v.input(0).count();
  if (real) {
    auto s = feature_state(v);
    s->first = {attrs.get_float("replaced_value_float", 0)};
    s->second = per_feature(floats, name, s->in[0]);
    return finish(v, p, run_features<impute>, std::move(s), n, n);
  }
  auto s = make_state<ImputeIntegers>(v);
  s->features = s->in[0].rank() ? std::max<int64_t>(s->in[0].dim(-1), 1) : 1;
  s->replaced = attrs.get_int("replaced_value_int64", 0);
  s->values = integers.copy();
  per_feature(std::vector<double>(s->values.size()), name, s->in[0]);
  const bool wide = s->in[0].dtype == TN_INT64;
  for (int64_t value : s->values)
    if (!wide && (value < INT32_MIN || value > INT32_MAX))
      fail(format("attribute '%s' holds %lld, which int32 cannot hold", name, static_cast<long long>(value)));
  finish(v, p, wide ? run_impute_integers<int64_t> : run_impute_integers<int32_t>, std::move(s), n, n);
}

// ---- Normalizer ----

struct NormalizerModel {
  enum Norm { max, l1, l2 } norm = max;
  int64_t features = 0;
  int64_t width() const { return features; }
  int64_t scratch() const { return 0; }
  int64_t work() const { return 2 * features; }
  int64_t score(const double* x, double* y, double*) const noexcept {
    double by = norm == max && features ? x[0] : 0;
    for (int64_t i = 0; i < features; ++i)
      by = norm == max ? std::max(by, x[i]) : norm == l1 ? by + std::fabs(x[i]) : by + x[i] * x[i];
    if (norm == l2) by = std::sqrt(by);
    for (int64_t i = 0; i < features; ++i) y[i] = by == 0 ? x[i] : x[i] / by;
    return 0;
  }
};
void infer_normalizer(Infer& c) {
  ranked(c, 0, "X", 1, 2);
  same_shape(c, 0, 0, TN_FLOAT32);
}
void plan_normalizer(const PlanView& v, Planned& p) {
  auto s = row_state<NormalizerModel>(v, "X");
  const auto norm = v.attrs().get_string("norm", "MAX");
  if (norm != "MAX" && norm != "L1" && norm != "L2")
    fail("attribute 'norm' is '" + std::string(norm) + "'; expected MAX, L1 or L2");
  s->model.norm = norm == "MAX"  ? NormalizerModel::max
                  : norm == "L1" ? NormalizerModel::l1
                                 : NormalizerModel::l2;
  s->model.features = s->rows.features;
  if (s->out[0].rank() == 1) s->out[0].dims.insert(s->out[0].dims.begin(), 1);  // a vector is one row
  finish_regressor(v, p, std::move(s));
}

// ---- FeatureVectorizer ----

void infer_vectorizer(Infer& c) {
  const auto widths = c.attrs().get_ints("inputdimensions");
  require(widths.size() == c.input_count(),
          format("attribute 'inputdimensions' has %zu elements; the node has %u operands", widths.size(),
                 c.input_count()));
  int64_t sum = 0;
  for (int64_t w : widths) {
    require(w >= 0 && w <= INT32_MAX,
            "attribute 'inputdimensions' holds " + text_of(w) + "; expected 0 to 2147483647");
    sum += w;
  }
  std::optional<tn_dim> count;
  for (uint32_t i = 0; i < c.input_count(); ++i) {
    const auto rows = rows_of(c, i, "X");
    if (!rows) continue;
    require(!count || !c.differ(*count, rows->count),
            "operands have " + (count ? c.text(*count) : "") + " and " + c.text(rows->count) + " rows");
    if (!count || rows->count >= 0) count = rows->count;
  }
  if (!count) return c.set_unranked(0, TN_FLOAT32);
  c.set(0, TN_FLOAT32, std::vector<tn_dim>{*count, sum});
}

struct VectorizerState : Base {
  std::vector<int64_t> widths, features, at;
  int64_t rows = 0, width = 0;
  Load<double> load = nullptr;
};
int run_vectorizer(const tn_kernel_args* a, uint32_t tile, uint32_t) noexcept {
  const auto& s = state<VectorizerState>(a);
  const Range range = tile_range(s.rows, s.tiles, tile);
  float* y = out<float>(a);
  double x[block];
  for (int64_t r = range.begin; r < range.end; ++r)
    for (size_t i = 0; i < s.widths.size(); ++i) {
      float* to = y + r * s.width + s.at[i];
      const int64_t n = std::min(s.widths[i], s.features[i]);
      for (int64_t k = 0; k < n; k += block) {
        const int64_t m = std::min(block, n - k);
        s.load(a->inputs[i], r * s.features[i] + k, 1, m, x);
        for (int64_t q = 0; q < m; ++q) to[k + q] = static_cast<float>(x[q]);
      }
      std::fill(to + n, to + s.widths[i], 0.0f);
    }
  return run_ok;
}
void plan_vectorizer(const PlanView& v, Planned& p) {
  auto s = make_state<VectorizerState>(v);
  s->widths = v.attrs().get_ints("inputdimensions").copy();
  if (s->widths.size() != s->in.size() || s->in.empty())
    fail(format("attribute 'inputdimensions' has %zu elements; the node has %zu operands", s->widths.size(),
                s->in.size()));
  for (size_t i = 0; i < s->in.size(); ++i) {
    const RowShape shape = rows_of(s->in[i], "X");
    if (i && shape.count != s->rows)
      fail(format("operands have %lld and %lld rows", static_cast<long long>(s->rows),
                  static_cast<long long>(shape.count)));
    s->rows = shape.count;
    s->features.push_back(shape.features);
    s->at.push_back(s->width);
    s->width += s->widths[i];
  }
  if (s->out[0].dims != Dims{s->rows, s->width})
    fail(format("the result is planned with shape %s; expected [%lld,%lld]",
                dims_text(s->out[0].dims).c_str(), static_cast<long long>(s->rows),
                static_cast<long long>(s->width)));
  s->load = loader<double>(s->in[0].dtype);
  const int64_t rows = s->rows, work = s->out[0].count;
  finish(v, p, run_vectorizer, std::move(s), rows, work);
}

}  // namespace

void add_ml_features(Plugin& p) {
  constexpr const char* ml = "ai.onnx.ml";
  define(p, "ArrayFeatureExtractor", ml).infer<infer_extract>();
  define(p, "Binarizer", ml).infer<infer_same>();
  define(p, "FeatureVectorizer", ml).infer<infer_vectorizer>();
  define(p, "Imputer", ml).infer<infer_same>();
  define(p, "Normalizer", ml).infer<infer_normalizer>();
  define(p, "Scaler", ml).infer<infer_scaler>();
  reference_kernel(p, "ai.onnx.ml::ArrayFeatureExtractor").plan<plan_extract>();
  reference_kernel(p, "ai.onnx.ml::Binarizer").plan<plan_binarizer>();
  reference_kernel(p, "ai.onnx.ml::FeatureVectorizer").plan<plan_vectorizer>();
  reference_kernel(p, "ai.onnx.ml::Imputer").plan<plan_imputer>();
  reference_kernel(p, "ai.onnx.ml::Normalizer").plan<plan_normalizer>();
  reference_kernel(p, "ai.onnx.ml::Scaler").plan<plan_scaler>();
}

}  // namespace tenon::ops
