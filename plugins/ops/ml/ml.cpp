#include "ml/ml.hpp"

namespace tenon::ops::ml {

std::optional<Rows> rows_of(Infer& c, uint32_t i, const char* name) {
  if (!ranked(c, i, name, 1, 2)) return std::nullopt;
  const auto d = c.dims(i);
  return d.size() == 1 ? Rows{1, d[0]} : Rows{d[0], d[1]};
}
RowShape rows_of(const Shape& s, const char* name) {
  if (s.rank() != 1 && s.rank() != 2)
    fail(format("operand %s has shape %s; expected [C] or [N,C]", name, dims_text(s.dims).c_str()));
  return s.rank() == 1 ? RowShape{1, s.dim(0)} : RowShape{s.dim(0), s.dim(1)};
}

void require_same_length(size_t a, const char* name_a, size_t b, const char* name_b) {
  require(a == b,
          format("attribute '%s' has %zu elements, '%s' has %zu; expected as many", name_a, a, name_b, b));
}

Labels labels_of(const Attributes& a, const char* numbers, const char* texts) {
  Labels r;
  r.numbers = a.get_ints(numbers).copy();
  for (const tn_str& s : a.get_strings(texts)) r.texts.emplace_back(view(s));
  require(r.numbers.empty() || r.texts.empty(),
          format("both attributes '%s' and '%s' are given; expected one of them", numbers, texts));
  return r;
}

void set_classified(Infer& c, const std::optional<Rows>& rows, const Labels& labels,
                    std::optional<tn_dim> scores) {
  const tn_dtype label = labels.are_text() ? TN_STRING : TN_INT64;
  if (!rows) {
    c.set_unranked(0, label);
    c.set_unranked(1, TN_FLOAT32);
    return;
  }
  c.set(0, label, std::vector<tn_dim>{rows->count});
  c.set(1, TN_FLOAT32, std::vector<tn_dim>{rows->count, scores ? *scores : c.data_dependent(1, 1)});
}

Transform transform_named(std::string_view name) {
  constexpr std::pair<const char*, Transform> names[] = {{"NONE", Transform::none},
                                                         {"SOFTMAX", Transform::softmax},
                                                         {"LOGISTIC", Transform::logistic},
                                                         {"SOFTMAX_ZERO", Transform::softmax_zero},
                                                         {"PROBIT", Transform::probit}};
  for (const auto& [known, value] : names)
    if (name == known) return value;
  fail("attribute 'post_transform' is '" + std::string(name) +
       "'; expected NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT");
}
Transform transform_numbered(int64_t number) {
  if (number < 0 || number > 4)
    fail(format("attribute 'post_transform' is %lld; expected 0 to 4", static_cast<long long>(number)));
  return static_cast<Transform>(number);
}

double logistic(double x) noexcept {
  const double v = 1 / (1 + std::exp(-std::fabs(x)));
  return x < 0 ? 1 - v : v;
}
// The inverse of the error function by Winitzki's formula, as the runtimes of this operator set have it.
double probit(double x) noexcept {
  const double y = 2 * x - 1, sign = y < 0 ? -1 : 1, rest = (1 - y) * (1 + y);
  if (rest == 0) return sign * std::numeric_limits<double>::infinity();
  constexpr double pi = 3.14159265358979323846;
  const double log = std::log(rest), v = 2 / (pi * 0.147) + 0.5 * log;
  return 1.41421356 * sign * std::sqrt(-v + std::sqrt(v * v - log / 0.147));
}

void transform(Transform t, double* scores, int64_t count) noexcept {
  if (t == Transform::none || count < 1) return;
  if (t == Transform::logistic || t == Transform::probit) {
    for (int64_t i = 0; i < count; ++i)
      scores[i] = t == Transform::probit ? probit(scores[i]) : logistic(scores[i]);
    return;
  }
  const double most = *std::max_element(scores, scores + count);
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    // SOFTMAX_ZERO keeps a score of zero at zero.
    const bool zero = t == Transform::softmax_zero && std::fabs(scores[i]) <= 1e-7;
    scores[i] = zero ? scores[i] * std::exp(-most) : std::exp(scores[i] - most);
    sum += scores[i];
  }
  for (int64_t i = 0; i < count; ++i) scores[i] = sum == 0 ? 0.5 : scores[i] / sum;
}

}  // namespace tenon::ops::ml
