// LinearClassifier and LinearRegressor of ai.onnx.ml.
//
// A classifier of one set of coefficients has two classes: a score above 0 means the second label, and the
// first class has 1 - score (after LOGISTIC, where that is asked for; no other transform is applied to the
// pair but PROBIT). One score alone is changed by PROBIT only. Both are what the runtimes of these models do.
#include "ml/ml.hpp"

namespace tenon::ops {
namespace {

using namespace tenon::ops::ml;

struct LinearModel {
  std::vector<double> coefficients, intercepts;
  int64_t sets = 0, features = 0;
  bool pair = false;  // one set of coefficients for two classes
  Transform end = Transform::none;
  int64_t width() const { return pair ? 2 : sets; }
  int64_t scratch() const { return 0; }
  int64_t work() const { return sets * features; }
  int64_t score(const double* x, double* y, double*) const noexcept {
    for (int64_t k = 0; k < sets; ++k) {
      double sum = intercepts.empty() ? 0 : intercepts[static_cast<size_t>(k)];
      const double* w = coefficients.data() + k * features;
      for (int64_t i = 0; i < features; ++i) sum += x[i] * w[i];
      y[k] = sum;
    }
    if (sets == 1) {
      const int64_t label = y[0] > 0;
      if (end == Transform::logistic && pair) y[0] = logistic(y[0]);
      if (pair) {
        y[1] = y[0];
        y[0] = 1 - y[1];
      }
      if (end == Transform::probit) transform(end, y, width());
      return label;
    }
    const auto label = std::max_element(y, y + sets) - y;
    transform(end, y, sets);
    return label;
  }
};

/// Sets of coefficients, each `features` long.
LinearModel linear_model(const Attributes& a, int64_t features) {
  LinearModel m;
  const auto w = a.get_floats("coefficients"), b = a.get_floats("intercepts");
  m.coefficients.assign(w.begin(), w.end());
  m.intercepts.assign(b.begin(), b.end());
  m.features = features;
  m.end = transform_named(a.get_string("post_transform", "NONE"));
  return m;
}
int64_t sets_of(size_t coefficients, int64_t features) {
  const auto n = static_cast<int64_t>(coefficients);
  if (n == 0 || features == 0 || n % features != 0)
    fail(format("attribute 'coefficients' has %lld elements; expected a multiple of X's %lld features",
                static_cast<long long>(n), static_cast<long long>(features)));
  return n / features;
}
void check_intercepts(const LinearModel& m) {
  if (!m.intercepts.empty() && static_cast<int64_t>(m.intercepts.size()) != m.sets)
    fail(format("attribute 'intercepts' has %zu elements; expected %lld, one for each set of coefficients",
                m.intercepts.size(), static_cast<long long>(m.sets)));
}

// ---- LinearRegressor ----

void infer_regressor(Infer& c) {
  const auto rows = rows_of(c, 0, "X");
  const int64_t targets = c.attrs().get_int("targets", 1);
  require(targets >= 1 && targets <= INT32_MAX,
          "attribute 'targets' is " + text_of(targets) + "; expected 1 or more");
  if (!rows) return c.set_unranked(0, TN_FLOAT32);
  c.set(0, TN_FLOAT32, std::vector<tn_dim>{rows->count, targets});
}
void plan_regressor(const PlanView& v, Planned& p) {
  auto s = row_state<LinearModel>(v, "X");
  s->model = linear_model(v.attrs(), s->rows.features);
  s->model.sets = v.attrs().get_int("targets", 1);
  if (sets_of(s->model.coefficients.size(), s->rows.features) != s->model.sets)
    fail(format("attribute 'coefficients' has %zu elements; expected %lld targets of X's %lld features",
                s->model.coefficients.size(), static_cast<long long>(s->model.sets),
                static_cast<long long>(s->rows.features)));
  check_intercepts(s->model);
  finish_regressor(v, p, std::move(s));
}

// ---- LinearClassifier ----

void infer_classifier(Infer& c) {
  const auto rows = rows_of(c, 0, "X");
  const Labels labels = labels_of(c.attrs(), "classlabels_ints", "classlabels_strings");
  std::optional<tn_dim> width;
  if (const auto features = rows ? c.number(rows->features) : std::nullopt) {
    const int64_t sets = sets_of(c.attrs().get_floats("coefficients").size(), *features);
    width = sets == 1 && labels.size() == 2 ? 2 : sets;
  }
  set_classified(c, rows, labels, width);
}
void plan_classifier(const PlanView& v, Planned& p) {
  auto s = row_state<LinearModel>(v, "X");
  LinearModel& m = s->model;
  m = linear_model(v.attrs(), s->rows.features);
  m.sets = sets_of(m.coefficients.size(), m.features);
  check_intercepts(m);
  s->labels = labels_of(v.attrs(), "classlabels_ints", "classlabels_strings");
  const int64_t wanted = std::max<int64_t>(m.sets, 2);
  if (s->labels.size() != 0 && static_cast<int64_t>(s->labels.size()) != wanted)
    fail(format("there are %zu class labels; expected %lld for %lld sets of coefficients", s->labels.size(),
                static_cast<long long>(wanted), static_cast<long long>(m.sets)));
  m.pair = m.sets == 1 && s->labels.size() == 2;
  finish_classifier(v, p, std::move(s));
}

}  // namespace

void add_ml_linear(Plugin& p) {
  define(p, "LinearRegressor", "ai.onnx.ml").infer<infer_regressor>();
  define(p, "LinearClassifier", "ai.onnx.ml").infer<infer_classifier>();
  reference_kernel(p, "ai.onnx.ml::LinearRegressor").plan<plan_regressor>();
  provide_classifier<plan_classifier>(p, "ai.onnx.ml::LinearClassifier");
}

}  // namespace tenon::ops
