// What the operators of ai.onnx.ml share: rows of features, labels, and what is done to scores at the end.
//
// Features of any number type are read as float64, scores are added in float64 and rounded once. A vector of
// C features is one row.
#pragma once
#include "support/define.hpp"
#include "support/handle.hpp"

namespace tenon::ops::ml {

using namespace tenon::reference;

/// Operand i as rows of features; unset when its rank is not known.
struct Rows {
  tn_dim count, features;
};
std::optional<Rows> rows_of(Infer& c, uint32_t i, const char* name);
/// The same of a plan's operand.
struct RowShape {
  int64_t count = 0, features = 0;
};
RowShape rows_of(const Shape& s, const char* name);

/// Lists of attributes that name one table must be equally long.
void require_same_length(size_t a, const char* name_a, size_t b, const char* name_b);

// ---- labels ----

struct Labels {
  std::vector<int64_t> numbers;
  std::vector<std::string> texts;
  bool are_text() const { return !texts.empty(); }
  size_t size() const { return are_text() ? texts.size() : numbers.size(); }
};
/// Exactly one of the two attributes lists the labels.
Labels labels_of(const Attributes& a, const char* numbers, const char* texts);
/// Types of a classifier's results: a label each row, and `scores` scores each row (unset: not known yet).
void set_classified(Infer& c, const std::optional<Rows>& rows, const Labels& labels,
                    std::optional<tn_dim> scores);

// ---- scores ----

enum class Transform { none, softmax, logistic, softmax_zero, probit };
Transform transform_named(std::string_view name);
/// As TreeEnsemble counts them.
Transform transform_numbered(int64_t number);
void transform(Transform t, double* scores, int64_t count) noexcept;
double logistic(double x) noexcept;
double probit(double x) noexcept;

// ---- kernels over rows ----

/// The state of a kernel that works row by row; `Model` has width() scores a row, scratch() numbers of
/// scratch memory, and
///   int64_t score(const double* features, double* scores, double* scratch) const noexcept
/// which gives the place of the row's label.
template <class Model>
struct RowState : Base {
  RowShape rows;
  Load<double> load = nullptr;
  Store<double> store = nullptr;
  Model model;
  Labels labels;
  int64_t numbers_needed() const { return rows.features + model.width() + model.scratch(); }
};

template <class Model, class F>
void each_row(const RowState<Model>& s, const void* x, Range range, double* memory, F&& f) noexcept {
  double *features = memory, *scores = features + s.rows.features, *scratch = scores + s.model.width();
  for (int64_t r = range.begin; r < range.end; ++r) {
    s.load(x, r * s.rows.features, 1, s.rows.features, features);
    f(r, s.model.score(features, scores, scratch), scores);
  }
}

template <class Model>
int run_regressor(const tn_kernel_args* a, uint32_t tile, uint32_t worker) noexcept {
  const auto& s = state<RowState<Model>>(a);
  each_row(s, a->inputs[0], tile_range(s.rows.count, s.tiles, tile), workspace<double>(a, worker),
           [&](int64_t r, int64_t, const double* scores) {
             s.store(scores, s.model.width(), a->outputs[0], r * s.model.width());
           });
  return run_ok;
}
template <class Model>
int run_classifier(const tn_kernel_args* a, uint32_t tile, uint32_t worker) noexcept {
  const auto& s = state<RowState<Model>>(a);
  each_row(s, a->inputs[0], tile_range(s.rows.count, s.tiles, tile), workspace<double>(a, worker),
           [&](int64_t r, int64_t label, const double* scores) {
             if (a->outputs[0])
               out<int64_t>(a, 0)[r] =
                   s.labels.numbers.empty() ? label : s.labels.numbers[static_cast<size_t>(label)];
             if (a->outputs[1]) s.store(scores, s.model.width(), a->outputs[1], r * s.model.width());
           });
  return run_ok;
}
/// Labels of text, which the run has to keep.
template <class Model>
void run_text_classifier(Run& run, const tn_kernel_args* a) {
  const auto& s = state<RowState<Model>>(a);
  std::vector<double> memory(static_cast<size_t>(s.numbers_needed()));
  auto* labels = s.has_out(0) ? static_cast<tn_str*>(run.output(0, TN_STRING, Dims{s.rows.count})) : nullptr;
  void* all = s.has_out(1) ? run.output(1, TN_FLOAT32, Dims{s.rows.count, s.model.width()}) : nullptr;
  std::vector<int64_t> found(static_cast<size_t>(s.rows.count));
  each_row(s, run.input(0).raw().data, {0, s.rows.count}, memory.data(),
           [&](int64_t r, int64_t label, const double* scores) {
             found[static_cast<size_t>(r)] = label;
             if (all) s.store(scores, s.model.width(), all, r * s.model.width());
           });
  if (labels)
    for (size_t r = 0; r < found.size(); ++r)
      labels[r] = run.api->keep_text(run.run, str(s.labels.texts[static_cast<size_t>(found[r])]));
}

/// Result `scores` of the plan holds the model's scores; the model must have been made for `rows`.
template <class Model>
std::unique_ptr<RowState<Model>> row_state(const PlanView& v, const char* operand) {
  auto s = make_state<RowState<Model>>(v);
  s->rows = rows_of(s->in[0], operand);
  s->load = loader<double>(s->in[0].dtype);
  return s;
}
template <class Model>
void check_scores(const RowState<Model>& s, size_t result) {
  const Dims wanted{s.rows.count, s.model.width()};
  if (s.has_out(result) && s.out[result].dims != wanted)
    fail(format("the model gives scores of shape %s; the result has %s", dims_text(wanted).c_str(),
                dims_text(s.out[result].dims).c_str()));
}
template <class Model>
void finish_regressor(const PlanView& v, Planned& p, std::unique_ptr<RowState<Model>> s) {
  check_scores(*s, 0);
  s->store = storer<double>(s->out[0].dtype);
  const int64_t rows = s->rows.count, work = checked_mul(rows, s->model.work());
  const uint64_t bytes = static_cast<uint64_t>(s->numbers_needed()) * sizeof(double);
  finish(v, p, run_regressor<Model>, std::move(s), rows, work, bytes);
}
template <class Model>
void finish_classifier(const PlanView& v, Planned& p, std::unique_ptr<RowState<Model>> s) {
  check_scores(*s, 1);
  s->store = storer<double>(TN_FLOAT32);
  if (s->labels.are_text()) return p.set(dynamic_kernel<run_text_classifier<Model>>, std::move(s));
  const int64_t rows = s->rows.count, work = checked_mul(rows, s->model.work());
  const uint64_t bytes = static_cast<uint64_t>(s->numbers_needed()) * sizeof(double);
  finish(v, p, run_classifier<Model>, std::move(s), rows, work, bytes);
}
/// Two records: labels of numbers, and labels of text.
template <void (*Plan)(const PlanView&, Planned&)>
void provide_classifier(Plugin& p, const char* op) {
  reference_kernel(p, op).output({TN_INT64}).output().plan<Plan>();
  reference_kernel(p, op, "_of_text")
      .flags(TN_KERNEL_DYNAMIC_OUTPUT)
      .output({TN_STRING})
      .output()
      .plan<Plan>();
}

}  // namespace tenon::ops::ml
