#include "arithmetic/constants.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace tenon::fusion {

using namespace sdk;

namespace {

constexpr int64_t max_elements = int64_t{1} << 20;  // larger constants are left to the kernels

template <class T>
T apply(T a, Arithmetic op, T b) {
  if constexpr (std::is_same_v<T, bool>) {
    return a;  // refused before
  } else if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    const auto x = static_cast<uint64_t>(static_cast<U>(a)), y = static_cast<uint64_t>(static_cast<U>(b));
    const uint64_t r = op == Arithmetic::add ? x + y : op == Arithmetic::subtract ? x - y : x * y;
    return static_cast<T>(static_cast<U>(r));
  } else {
    // In double, where products and sums of narrower types are exact, or nearly, before they are rounded.
    const double x = static_cast<double>(a), y = static_cast<double>(b);
    const double r = op == Arithmetic::add        ? x + y
                     : op == Arithmetic::subtract ? x - y
                     : op == Arithmetic::multiply ? x * y
                                                  : x / y;
    return T(static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(r));
  }
}

std::optional<Dims> broadcast(Span<const int64_t> a, Span<const int64_t> b) {
  Dims r(std::max(a.size(), b.size()), 1);
  for (size_t i = 0; i < r.size(); ++i) {
    const size_t from_end = r.size() - i;
    const int64_t x = from_end <= a.size() ? a[a.size() - from_end] : 1;
    const int64_t y = from_end <= b.size() ? b[b.size() - from_end] : 1;
    if (x != y && x != 1 && y != 1) return std::nullopt;
    r[i] = x == 1 ? y : x;
  }
  return r;
}

/// The element of an operand of these dims at a place of the whole.
int64_t place(Span<const int64_t> dims, const Dims& whole, const Dims& at) {
  int64_t r = 0;
  for (size_t i = 0; i < dims.size(); ++i)
    r = r * dims[i] + (dims[i] == 1 ? 0 : at[whole.size() - dims.size() + i]);
  return r;
}

}  // namespace

std::optional<OwnedTensor> combined(const TensorView& a, Arithmetic op, const TensorView& b) {
  if (a.dtype() != b.dtype() || a.dtype() == TN_BOOL) return std::nullopt;
  if (op == Arithmetic::divide && is_integer(a.dtype())) return std::nullopt;
  const auto dims = broadcast(a.dims(), b.dims());
  if (!dims) return std::nullopt;
  const int64_t count = element_count(*dims);
  if (count > max_elements || count > std::max(a.count(), b.count())) return std::nullopt;
  OwnedTensor r(a.dtype(), *dims);
  const bool known = visit_number(a.dtype(), [&](auto zero) {
    using T = decltype(zero);
    Dims at(dims->size(), 0);
    for (int64_t i = 0; i < count; ++i) {
      r.data<T>()[i] =
          apply<T>(a.data<T>()[place(a.dims(), *dims, at)], op, b.data<T>()[place(b.dims(), *dims, at)]);
      for (size_t axis = dims->size(); axis-- > 0;) {
        if (++at[axis] < (*dims)[axis]) break;
        at[axis] = 0;
      }
    }
  });
  if (!known) return std::nullopt;
  return r;
}

std::optional<OwnedTensor> combined(const Context& c, tn_value a, Arithmetic op, tn_value b) {
  const auto count = [&](tn_value v) {
    int64_t n = 1;
    for (tn_dim d : dims_of(c.type(v)))
      n = d < 0 ? max_elements + 1 : std::min(max_elements + 1, checked_mul(n, d));
    return n;
  };
  if (!c.graph.is_constant(a) || !c.graph.is_constant(b) || std::max(count(a), count(b)) > max_elements)
    return std::nullopt;
  const auto x = c.graph.constant(a), y = c.graph.constant(b);
  if (!x || !y) return std::nullopt;
  return combined(*x, op, *y);
}

std::optional<OwnedTensor> negated(const TensorView& a) {
  if (a.dtype() == TN_BOOL) return std::nullopt;
  OwnedTensor r(a.dtype(), a.dims().copy());
  const bool known = visit_number(a.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0, n = a.count(); i < n; ++i) {
      const T x = a.data<T>()[i];
      if constexpr (std::is_integral_v<T>)
        r.data<T>()[i] = apply<T>(T{0}, Arithmetic::subtract, x);
      else
        r.data<T>()[i] = T(-x);
    }
  });
  if (!known) return std::nullopt;
  return r;
}

bool within(const TensorView& t, double low, double high) {
  for (int64_t i = 0, n = t.count(); i < n; ++i) {
    const double x = std::fabs(t.float_at(i));
    if (!(x >= low && x <= high)) return false;
  }
  return true;
}

bool moderate(const TensorView& t) {
  const double reach = t.dtype() == TN_FLOAT16 ? 32.0 : 4294967296.0;
  return within(t, 1 / reach, reach);
}

bool exact_reciprocal(const TensorView& t) {
  const double low = t.dtype() == TN_FLOAT16 ? 0x1p-14 : t.dtype() == TN_FLOAT64 ? 0x1p-1021 : 0x1p-126;
  if (!within(t, low, 1 / low)) return false;
  for (int64_t i = 0, n = t.count(); i < n; ++i) {
    int exponent = 0;
    if (std::fabs(std::frexp(t.float_at(i), &exponent)) != 0.5) return false;
  }
  return true;
}

tn_value uniform(Transaction& edit, tn_dtype dtype, const Dims& dims, double value) {
  OwnedTensor one(dtype, {});
  visit_number(dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_same_v<T, double> || std::is_integral_v<T>)
      one.data<T>()[0] = static_cast<T>(value);
    else
      one.data<T>()[0] = T(static_cast<float>(value));
  });
  const tn_tensor t{dtype, static_cast<int32_t>(dims.size()), dims.data(), one.raw().data, one.bytes()};
  tn_value v = TN_NONE;
  check(edit.api()->constant_uniform(edit.raw(), {}, &t, &v), "creating a constant");
  return v;
}

std::optional<Dims> numeric_dims(const Context& c, tn_value v) {
  const tn_type t = c.type(v);
  if (t.rank < 0) return std::nullopt;
  Dims dims;
  for (tn_dim d : dims_of(t)) {
    const auto n = c.number(d);
    if (!n) return std::nullopt;
    dims.push_back(*n);
  }
  return dims;
}

}  // namespace tenon::fusion
