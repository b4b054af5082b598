// TreeEnsemble, TreeEnsembleRegressor and TreeEnsembleClassifier of ai.onnx.ml.
//
// Where a feature is NaN, a comparison is false (BRANCH_NEQ: true) unless the node says that missing values
// are true. A target that no leaf votes for scores 0, its base added. One score alone is changed by PROBIT
// only. A classifier of two labels whose leaves vote for one class has one score s, of the second label,
// which is chosen above 0 or, when no weight is negative, above 0.5; its scores are (-s, s) or (1 - s, s),
// LOGISTIC of both where asked for. That is what the runtimes of these models do.
#include "ml/trees.hpp"

namespace tenon::ops {
namespace {

using namespace tenon::ops::ml;

struct RegressorModel {
  Forest forest;
  Transform end = Transform::none;
  int64_t width() const { return forest.targets; }
  int64_t scratch() const { return forest.targets; }
  int64_t work() const { return static_cast<int64_t>(forest.roots.size()) * forest.depth * 4; }
  int64_t score(const double* x, double* y, double* voted) const noexcept {
    forest.evaluate(x, y, voted);
    if (forest.targets > 1 || end == Transform::probit) transform(end, y, forest.targets);
    return 0;
  }
};

void infer_targets(Infer& c, tn_dtype dtype) {
  const auto rows = rows_of(c, 0, "X");
  const int64_t targets = c.attrs().get_int("n_targets", 1);
  require(targets >= 1 && targets <= INT32_MAX,
          "attribute 'n_targets' is " + text_of(targets) + "; expected 1 or more");
  if (!rows) return c.set_unranked(0, dtype);
  c.set(0, dtype, std::vector<tn_dim>{rows->count, targets});
}
void infer_ensemble(Infer& c) { infer_targets(c, c.dtype(0)); }
void infer_regressor(Infer& c) { infer_targets(c, TN_FLOAT32); }

Aggregate aggregate_named(std::string_view name) {
  constexpr const char* names[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  for (size_t i = 0; i < std::size(names); ++i)
    if (name == names[i]) return static_cast<Aggregate>(i);
  fail("attribute 'aggregate_function' is '" + std::string(name) + "'; expected SUM, AVERAGE, MIN or MAX");
}

void plan_regressor(const PlanView& v, Planned& p) {
  auto s = row_state<RegressorModel>(v, "X");
  const auto a = v.attrs();
  s->model.forest = read_forest(a, "target");
  s->model.forest.aggregate = aggregate_named(a.get_string("aggregate_function", "SUM"));
  s->model.end = transform_named(a.get_string("post_transform", "NONE"));
  s->model.forest.targets = a.get_int("n_targets", 1);
  s->model.forest.check(s->rows.features);
  finish_regressor(v, p, std::move(s));
}
void plan_ensemble(const PlanView& v, Planned& p) {
  auto s = row_state<RegressorModel>(v, "X");
  const auto a = v.attrs();
  s->model.forest = read_ensemble(a);
  const int64_t aggregate = a.get_int("aggregate_function", 1);
  if (aggregate < 0 || aggregate > 3)
    fail(
        format("attribute 'aggregate_function' is %lld; expected 0 to 3", static_cast<long long>(aggregate)));
  s->model.forest.aggregate = static_cast<Aggregate>(aggregate);
  s->model.end = transform_numbered(a.get_int("post_transform", 0));
  s->model.forest.targets = a.get_int("n_targets", 1);
  s->model.forest.check(s->rows.features);
  finish_regressor(v, p, std::move(s));
}

struct ClassifierModel {
  Forest forest;
  Transform end = Transform::none;
  bool pair = false, positive = false;  // one score for two labels; no weight is negative
  int64_t width() const { return pair ? 2 : forest.targets; }
  int64_t scratch() const { return forest.targets; }
  int64_t work() const { return static_cast<int64_t>(forest.roots.size()) * forest.depth * 4; }
  int64_t score(const double* x, double* y, double* voted) const noexcept {
    forest.evaluate(x, y, voted);
    if (!pair && forest.targets > 1) {
      const auto label = std::max_element(y, y + forest.targets) - y;
      transform(end, y, forest.targets);
      return label;
    }
    const double s = y[0];
    const int64_t label = s > (pair && positive ? 0.5 : 0);
    if (pair) {
      y[1] = s;
      y[0] = positive && end != Transform::logistic ? 1 - s : -s;
      if (end == Transform::logistic || end == Transform::probit) transform(end, y, 2);
    } else if (end == Transform::probit) {
      y[0] = probit(s);
    }
    return label;
  }
};
void infer_classifier(Infer& c) {
  const Labels labels = labels_of(c.attrs(), "classlabels_int64s", "classlabels_strings");
  set_classified(c, rows_of(c, 0, "X"), labels, static_cast<tn_dim>(labels.size()));
}
void plan_classifier(const PlanView& v, Planned& p) {
  auto s = row_state<ClassifierModel>(v, "X");
  const auto a = v.attrs();
  s->labels = labels_of(a, "classlabels_int64s", "classlabels_strings");
  const size_t labels = s->labels.size();
  if (labels == 0 || (labels == 1 && s->labels.are_text()))
    fail(format("there are %zu class labels; expected two or more", labels));
  ClassifierModel& m = s->model;
  Forest& f = m.forest;
  f = read_forest(a, "class");
  m.end = transform_named(a.get_string("post_transform", "NONE"));
  const auto ids = a.get_ints("class_ids");
  m.pair = labels == 2 && std::all_of(ids.begin(), ids.end(), [](int64_t id) { return id == 0; });
  m.positive = f.all_weights_positive();
  f.targets = m.pair ? 1 : static_cast<int64_t>(labels);
  if (m.pair && f.base.size() == 2) f.base.pop_back();
  if (labels == 1)
    s->labels.numbers.clear();  // one label alone: 1 says that it was chosen, 0 that it was not
  f.check(s->rows.features);
  finish_classifier(v, p, std::move(s));
}

}  // namespace

void add_ml_trees(Plugin& p) {
  constexpr const char* ml = "ai.onnx.ml";
  define(p, "TreeEnsemble", ml).infer<infer_ensemble>();
  define(p, "TreeEnsembleRegressor", ml).infer<infer_regressor>();
  define(p, "TreeEnsembleClassifier", ml).infer<infer_classifier>();
  reference_kernel(p, "ai.onnx.ml::TreeEnsemble").plan<plan_ensemble>();
  reference_kernel(p, "ai.onnx.ml::TreeEnsembleRegressor").plan<plan_regressor>();
  provide_classifier<plan_classifier>(p, "ai.onnx.ml::TreeEnsembleClassifier");
}

}  // namespace tenon::ops
