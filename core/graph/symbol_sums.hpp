// Arithmetic behind SymbolTable: saturating integers, intervals, and sums of products in canonical order.
#pragma once
#include <cstdint>
#include <vector>

namespace tenon::sums {

struct Term {
  int64_t coefficient = 0;
  std::vector<uint32_t> factors;  // ascending, repeated for powers; none: the constant
  bool operator==(const Term&) const = default;
};
using Sum =
    std::vector<Term>;  // ordered by degree and factors, the constant last, no zero coefficients; empty: zero

int64_t saturating_add(int64_t a, int64_t b);
int64_t saturating_multiply(int64_t a, int64_t b);
// Rounded down; b is not 0. The remainder has the sign of b.
int64_t floor_div(int64_t a, int64_t b);
int64_t floor_mod(int64_t a, int64_t b);

// Bounds: the ends of int64 are infinities.
struct Interval {
  int64_t lo = 0, hi = 0;
};
int64_t bound_add(int64_t a, int64_t b);
int64_t bound_multiply(int64_t a, int64_t b);
Interval times(const Interval& a, const Interval& b);

Sum add(const Sum& a, const Sum& b, int64_t scale_b);  // a + scale_b * b
Sum multiply(const Sum& a, const Sum& b);
bool sum_number(const Sum& sum, int64_t* value);
// True when dividend = divisor * quotient, found by dividing leading terms; false may also mean "not found".
bool divides(const Sum& divisor, const Sum& dividend, Sum* quotient);

}  // namespace tenon::sums
