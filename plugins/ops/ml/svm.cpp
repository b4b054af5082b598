// SVMClassifier and SVMRegressor of ai.onnx.ml.
//
// Without support vectors they are linear: one row of coefficients a class. With them each pair of classes
// has a decision value, and the class with most votes is the label (ties: the first). With prob_a and prob_b
// the scores are probabilities of the classes, else the decision values; two classes without probabilities
// have one value s, given as (-s, s), under SOFTMAX and SOFTMAX_ZERO as (1 - s, s), as the runtimes of these
// models do. One score alone is changed by PROBIT only.
#include "ml/ml.hpp"

namespace tenon::ops {
namespace {

using namespace tenon::ops::ml;

enum class KernelType { linear, poly, rbf, sigmoid };

struct Support {
  KernelType type = KernelType::linear;
  double gamma = 0, offset = 0, degree = 0;
  std::vector<double> vectors;  // [count][features]
  int64_t count = 0, features = 0;

  double kernel(const double* x, const double* y) const noexcept {
    double sum = 0;
    if (type == KernelType::rbf) {
      for (int64_t i = 0; i < features; ++i) sum += (x[i] - y[i]) * (x[i] - y[i]);
      return std::exp(-gamma * sum);
    }
    for (int64_t i = 0; i < features; ++i) sum += x[i] * y[i];
    if (type == KernelType::linear) return sum;
    sum = sum * gamma + offset;
    return type == KernelType::poly ? std::pow(sum, degree) : std::tanh(sum);
  }
};

std::vector<double> floats(const Attributes& a, const char* name) {
  const auto v = a.get_floats(name);
  return {v.begin(), v.end()};
}
Support support_of(const Attributes& a, int64_t count, int64_t features) {
  Support s;
  const auto type = a.get_string("kernel_type", "LINEAR");
  constexpr std::pair<const char*, KernelType> types[] = {{"LINEAR", KernelType::linear},
                                                          {"POLY", KernelType::poly},
                                                          {"RBF", KernelType::rbf},
                                                          {"SIGMOID", KernelType::sigmoid}};
  const auto* found =
      std::find_if(std::begin(types), std::end(types), [&](const auto& t) { return type == t.first; });
  if (found == std::end(types))
    fail("attribute 'kernel_type' is '" + std::string(type) + "'; expected LINEAR, POLY, RBF or SIGMOID");
  s.type = count ? found->second : KernelType::linear;
  const auto parameters = a.get_floats("kernel_params");
  if (!parameters.empty() && parameters.size() != 3)
    fail(format("attribute 'kernel_params' has %zu elements; expected 3: gamma, coef0, degree",
                parameters.size()));
  if (!parameters.empty()) {
    s.gamma = parameters[0];
    s.offset = parameters[1];
    s.degree = parameters[2];
  }
  s.count = count;
  s.features = features;
  s.vectors = floats(a, "support_vectors");
  if (count && static_cast<int64_t>(s.vectors.size()) != checked_mul(count, features))
    fail(format("attribute 'support_vectors' has %zu elements; expected %lld vectors of X's %lld features",
                s.vectors.size(), static_cast<long long>(count), static_cast<long long>(features)));
  return s;
}

// ---- SVMRegressor ----

struct RegressorModel {
  Support support;
  std::vector<double> coefficients;
  double rho = 0;
  bool one_class = false;
  Transform end = Transform::none;
  int64_t width() const { return 1; }
  int64_t scratch() const { return 0; }
  int64_t work() const { return std::max<int64_t>(support.count, 1) * support.features; }
  int64_t score(const double* x, double* y, double*) const noexcept {
    double sum = rho;
    if (support.count == 0) sum += support.kernel(x, coefficients.data());
    for (int64_t j = 0; j < support.count; ++j)
      sum += coefficients[static_cast<size_t>(j)] *
             support.kernel(x, support.vectors.data() + j * support.features);
    y[0] = one_class ? (sum > 0 ? 1 : -1) : sum;
    if (end == Transform::probit) y[0] = probit(y[0]);
    return 0;
  }
};
void infer_regressor(Infer& c) {
  const auto rows = rows_of(c, 0, "X");
  if (!rows) return c.set_unranked(0, TN_FLOAT32);
  c.set(0, TN_FLOAT32, std::vector<tn_dim>{rows->count, 1});
}
void plan_regressor(const PlanView& v, Planned& p) {
  auto s = row_state<RegressorModel>(v, "X");
  RegressorModel& m = s->model;
  const auto a = v.attrs();
  const int64_t count = a.get_int("n_supports", 0);
  if (count < 0)
    fail(format("attribute 'n_supports' is %lld; expected 0 or more", static_cast<long long>(count)));
  m.support = support_of(a, count, s->rows.features);
  m.coefficients = floats(a, "coefficients");
  const int64_t wanted = count ? count : s->rows.features;
  if (static_cast<int64_t>(m.coefficients.size()) != wanted)
    fail(format("attribute 'coefficients' has %zu elements; expected %lld", m.coefficients.size(),
                static_cast<long long>(wanted)));
  const auto rho = floats(a, "rho");
  if (rho.size() != 1) fail(format("attribute 'rho' has %zu elements; expected 1", rho.size()));
  m.rho = rho[0];
  m.one_class = a.get_int("one_class", 0) != 0;
  m.end = transform_named(a.get_string("post_transform", "NONE"));
  finish_regressor(v, p, std::move(s));
}

// ---- SVMClassifier ----

struct ClassifierModel {
  Support support;
  std::vector<double> coefficients, rho, prob_a, prob_b;
  std::vector<int64_t> first, per_class;  // support vectors of each class
  int64_t classes = 1;
  Transform end = Transform::none;
  bool has_pairs() const { return support.count > 0; }
  bool has_probabilities() const { return has_pairs() && !prob_a.empty(); }
  int64_t pairs() const { return classes * (classes - 1) / 2; }
  int64_t width() const {
    if (!has_pairs() || has_probabilities()) return classes;
    return classes == 2 ? 2 : pairs();
  }
  // kernels, votes, decision values, and the matrices of probabilities()
  int64_t scratch() const { return support.count + classes + pairs() + 2 * classes * classes + classes; }
  int64_t work() const {
    return std::max(support.count, classes) * support.features + support.count * classes + classes * classes;
  }

  int64_t score(const double* x, double* y, double* scratch) const noexcept {
    if (!has_pairs()) {
      for (int64_t k = 0; k < classes; ++k)
        y[k] = rho[0] + support.kernel(x, coefficients.data() + k * support.features);
      const auto label = std::max_element(y, y + classes) - y;
      if (classes > 1 || end == Transform::probit) transform(end, y, classes);
      return label;
    }
    double *kernels = scratch, *votes = kernels + support.count, *values = votes + classes;
    decide(x, kernels, votes, values);
    const auto label = std::max_element(votes, votes + classes) - votes;
    if (has_probabilities()) {
      probabilities(values, y, values + pairs());
      transform(end, y, classes);
    } else if (classes == 2) {
      const bool soft = end == Transform::softmax || end == Transform::softmax_zero;
      y[0] = soft ? 1 - values[0] : -values[0];
      y[1] = values[0];
      if (!soft) transform(end, y, 2);
    } else {
      std::copy(values, values + pairs(), y);
      if (pairs() > 1 || end == Transform::probit) transform(end, y, pairs());
    }
    return label;
  }
  void decide(const double* x, double* kernels, double* votes, double* values) const noexcept {
    for (int64_t j = 0; j < support.count; ++j)
      kernels[j] = support.kernel(x, support.vectors.data() + j * support.features);
    std::fill(votes, votes + classes, 0.0);
    int64_t pair = 0;
    for (int64_t i = 0; i < classes; ++i)
      for (int64_t j = i + 1; j < classes; ++j, ++pair) {
        double sum = rho[static_cast<size_t>(pair)];
        const auto add = [&](int64_t row, int64_t of) {
          const double* w = coefficients.data() + row * support.count;
          const int64_t begin = first[static_cast<size_t>(of)],
                        past = begin + per_class[static_cast<size_t>(of)];
          for (int64_t k = begin; k < past; ++k) sum += w[k] * kernels[k];
        };
        add(j - 1, i);
        add(i, j);
        values[pair] = sum;
        votes[sum > 0 ? i : j] += 1;
      }
  }
  /// Wu, Lin and Weng's coupling of pairwise probabilities: p minimises the sum of (r_ji p_i - r_ij p_j)^2.
  void probabilities(const double* values, double* p, double* memory) const noexcept {
    const int64_t k = classes;
    double *r = memory, *q = r + k * k, *qp = q + k * k;
    int64_t pair = 0;
    for (int64_t i = 0; i < k; ++i)
      for (int64_t j = i + 1; j < k; ++j, ++pair) {
        const auto at = static_cast<size_t>(pair);
        const double one = 1 - logistic(values[pair] * prob_a[at] + prob_b[at]);
        r[i * k + j] = std::min(std::max(one, 1e-7), 1 - 1e-7);
        r[j * k + i] = 1 - r[i * k + j];
      }
    for (int64_t t = 0; t < k; ++t) {
      p[t] = 1.0 / static_cast<double>(k);
      q[t * k + t] = 0;
      for (int64_t j = 0; j < k; ++j) {
        if (j == t) continue;
        q[t * k + t] += r[j * k + t] * r[j * k + t];
        q[t * k + j] = -r[j * k + t] * r[t * k + j];
      }
    }
    const int64_t most = std::max<int64_t>(100, k);
    for (int64_t iteration = 0; iteration < most; ++iteration) {
      double pqp = 0, error = 0;
      for (int64_t t = 0; t < k; ++t) {
        qp[t] = 0;
        for (int64_t j = 0; j < k; ++j) qp[t] += q[t * k + j] * p[j];
        pqp += p[t] * qp[t];
      }
      for (int64_t t = 0; t < k; ++t) error = std::max(error, std::fabs(qp[t] - pqp));
      if (error < 0.005 / static_cast<double>(k)) break;
      for (int64_t t = 0; t < k; ++t) {
        const double diff = (-qp[t] + pqp) / q[t * k + t];
        p[t] += diff;
        pqp = (pqp + diff * (diff * q[t * k + t] + 2 * qp[t])) / (1 + diff) / (1 + diff);
        for (int64_t j = 0; j < k; ++j) {
          qp[j] = (qp[j] + diff * q[t * k + j]) / (1 + diff);
          p[j] /= 1 + diff;
        }
      }
    }
  }
};

/// Everything but what needs the number of features.
ClassifierModel classifier_model(const Attributes& a, const Labels& labels) {
  ClassifierModel m;
  m.per_class = a.get_ints("vectors_per_class").copy();
  int64_t total = 0;
  for (int64_t n : m.per_class) {
    require(n >= 0 && n <= INT32_MAX,
            "attribute 'vectors_per_class' holds " + text_of(n) + "; expected 0 or more");
    m.first.push_back(total);
    total += n;
  }
  m.support.count = total;
  m.classes = std::max<int64_t>(static_cast<int64_t>(labels.size()), 1);
  require(total == 0 || static_cast<int64_t>(m.per_class.size()) == m.classes,
          format("attribute 'vectors_per_class' has %zu elements; expected %lld, one for each class label",
                 m.per_class.size(), static_cast<long long>(m.classes)));
  require(total == 0 || m.classes >= 2, "a classifier with support vectors needs two class labels or more");
  require(m.classes <= 4096,
          format("there are %lld class labels; the most is 4096", static_cast<long long>(m.classes)));
  m.prob_a = floats(a, "prob_a");
  m.prob_b = floats(a, "prob_b");
  require_same_length(m.prob_a.size(), "prob_a", m.prob_b.size(), "prob_b");
  return m;
}
void infer_classifier(Infer& c) {
  const Labels labels = labels_of(c.attrs(), "classlabels_ints", "classlabels_strings");
  set_classified(c, rows_of(c, 0, "X"), labels, classifier_model(c.attrs(), labels).width());
}
void plan_classifier(const PlanView& v, Planned& p) {
  auto s = row_state<ClassifierModel>(v, "X");
  const auto a = v.attrs();
  s->labels = labels_of(a, "classlabels_ints", "classlabels_strings");
  s->model = classifier_model(a, s->labels);
  ClassifierModel& m = s->model;
  m.support = support_of(a, m.support.count, s->rows.features);
  m.coefficients = floats(a, "coefficients");
  m.rho = floats(a, "rho");
  m.end = transform_named(a.get_string("post_transform", "NONE"));
  const auto expect = [](const char* name, size_t found, int64_t wanted) {
    if (static_cast<int64_t>(found) != wanted)
      fail(format("attribute '%s' has %zu elements; expected %lld", name, found,
                  static_cast<long long>(wanted)));
  };
  expect("coefficients", m.coefficients.size(),
         m.has_pairs() ? (m.classes - 1) * m.support.count : checked_mul(m.classes, s->rows.features));
  if (m.has_pairs())
    expect("rho", m.rho.size(), m.pairs());
  else if (m.rho.empty())
    fail("attribute 'rho' is missing");
  if (m.has_probabilities()) expect("prob_a", m.prob_a.size(), m.pairs());
  finish_classifier(v, p, std::move(s));
}

}  // namespace

void add_ml_svm(Plugin& p) {
  define(p, "SVMRegressor", "ai.onnx.ml").infer<infer_regressor>();
  define(p, "SVMClassifier", "ai.onnx.ml").infer<infer_classifier>();
  reference_kernel(p, "ai.onnx.ml::SVMRegressor").plan<plan_regressor>();
  provide_classifier<plan_classifier>(p, "ai.onnx.ml::SVMClassifier");
}

}  // namespace tenon::ops
