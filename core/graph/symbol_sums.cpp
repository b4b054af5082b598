#include "core/graph/symbol_sums.hpp"

#include <algorithm>

namespace tenon::sums {

int64_t saturating_add(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a < 0 ? INT64_MIN : INT64_MAX;
}
int64_t saturating_multiply(int64_t a, int64_t b) {
  int64_t product = 0;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
}
int64_t floor_div(int64_t a, int64_t b) {
  if (b == -1) return a == INT64_MIN ? INT64_MAX : -a;
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}
int64_t floor_mod(int64_t a, int64_t b) {
  if (b == -1) return 0;
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

namespace {
bool infinite(int64_t bound) { return bound == INT64_MAX || bound == INT64_MIN; }
}  // namespace

int64_t bound_add(int64_t a, int64_t b) {
  if (infinite(a)) return a;
  if (infinite(b)) return b;
  return saturating_add(a, b);
}
int64_t bound_multiply(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (infinite(a) || infinite(b)) return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
  return saturating_multiply(a, b);
}
Interval times(const Interval& a, const Interval& b) {
  const int64_t corners[] = {bound_multiply(a.lo, b.lo), bound_multiply(a.lo, b.hi),
                             bound_multiply(a.hi, b.lo), bound_multiply(a.hi, b.hi)};
  return {*std::min_element(std::begin(corners), std::end(corners)),
          *std::max_element(std::begin(corners), std::end(corners))};
}

namespace {
// By degree, so that dividing leading terms makes progress; the constant comes last.
bool comes_first(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
  return a.size() != b.size() ? a.size() > b.size() : a < b;
}
}  // namespace

Sum add(const Sum& a, const Sum& b, int64_t scale_b) {
  Sum sum;
  sum.reserve(a.size() + b.size());
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (j == b.size() || (i < a.size() && comes_first(a[i].factors, b[j].factors))) {
      sum.push_back(a[i++]);
    } else if (i == a.size() || comes_first(b[j].factors, a[i].factors)) {
      sum.push_back({saturating_multiply(scale_b, b[j].coefficient), b[j].factors});
      ++j;
    } else {
      const int64_t coefficient =
          saturating_add(a[i].coefficient, saturating_multiply(scale_b, b[j].coefficient));
      if (coefficient != 0) sum.push_back({coefficient, a[i].factors});
      ++i;
      ++j;
    }
  }
  return sum;
}

Sum multiply(const Sum& a, const Sum& b) {
  Sum terms;
  terms.reserve(a.size() * b.size());
  for (const Term& left : a)
    for (const Term& right : b) {
      Term term{saturating_multiply(left.coefficient, right.coefficient), {}};
      term.factors.resize(left.factors.size() + right.factors.size());
      std::merge(left.factors.begin(), left.factors.end(), right.factors.begin(), right.factors.end(),
                 term.factors.begin());
      terms.push_back(std::move(term));
    }
  std::sort(terms.begin(), terms.end(),
            [](const Term& x, const Term& y) { return comes_first(x.factors, y.factors); });
  Sum sum;
  for (Term& term : terms) {
    if (!sum.empty() && sum.back().factors == term.factors)
      sum.back().coefficient = saturating_add(sum.back().coefficient, term.coefficient);
    else
      sum.push_back(std::move(term));
    if (sum.back().coefficient == 0) sum.pop_back();
  }
  return sum;
}

bool sum_number(const Sum& sum, int64_t* value) {
  if (sum.empty()) {
    *value = 0;
    return true;
  }
  if (sum.size() != 1 || !sum[0].factors.empty()) return false;
  *value = sum[0].coefficient;
  return true;
}

bool divides(const Sum& divisor, const Sum& dividend, Sum* quotient) {
  if (divisor.empty()) return false;
  const Term& lead = divisor[0];
  Sum rest = dividend, found;
  for (int step = 0; step < 32; ++step) {
    if (rest.empty()) {
      *quotient = std::move(found);
      return true;
    }
    const Term& first = rest[0];
    if (lead.coefficient == 0 || lead.coefficient == -1 || first.coefficient % lead.coefficient != 0) {
      if (lead.coefficient != -1 || first.coefficient == INT64_MIN) return false;
    }
    if (!std::includes(first.factors.begin(), first.factors.end(), lead.factors.begin(), lead.factors.end()))
      return false;
    Term term{first.coefficient / lead.coefficient, {}};
    std::set_difference(first.factors.begin(), first.factors.end(), lead.factors.begin(), lead.factors.end(),
                        std::back_inserter(term.factors));
    const Sum one{term};
    Sum next = add(rest, multiply(divisor, one), -1);
    if (!next.empty() && !comes_first(first.factors, next[0].factors)) return false;  // no progress
    found = add(found, one, 1);
    rest = std::move(next);
  }
  return false;
}

}  // namespace tenon::sums
