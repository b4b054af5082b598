// Tensors from nothing, or from a shape or a few numbers: Constant, ConstantOfShape, Range.
#include <cmath>

#include "support/define.hpp"

namespace tenon::ops {
namespace {

/// Elements of a small integer or bool tensor.
std::optional<std::vector<tn_dim>> elements_of(Infer& c, const tn_tensor& t) {
  if (!(is_integer(t.dtype) || t.dtype == TN_BOOL) || dtype_bytes(t.dtype) == 0) return std::nullopt;
  const TensorView view(t);
  const auto n = count_up_to(view.dims().copy(), max_known);
  if (!n || packed_bytes(t.dtype, *n) > t.bytes) return std::nullopt;
  std::vector<tn_dim> e;
  for (int64_t i = 0; i < *n; ++i) e.push_back(c.make(view.int_at(i)));
  return e;
}

void infer_constant(Infer& c) {
  const Attributes a = c.attrs();
  if (const tn_tensor* t = a.get_tensor("value")) {
    c.set(0, t->dtype, Span<const tn_dim>(t->dims, static_cast<size_t>(t->rank)));
    if (const auto e = elements_of(c, *t)) set_known(c, 0, *e);
    return;
  }
  const auto list = [&](tn_dtype dtype, size_t count) {
    const auto n = static_cast<tn_dim>(count);
    c.set(0, dtype, {&n, 1});
  };
  if (a.has("value_float")) return c.set(0, TN_FLOAT32, Span<const tn_dim>());
  if (a.has("value_string")) return c.set(0, TN_STRING, Span<const tn_dim>());
  if (a.has("value_floats")) return list(TN_FLOAT32, a.get_floats("value_floats").size());
  if (a.has("value_strings")) return list(TN_STRING, a.get_strings("value_strings").size());
  std::vector<tn_dim> e;
  if (a.has("value_int")) {
    c.set(0, TN_INT64, Span<const tn_dim>());
    return set_known(c, 0, {c.make(a.get_int("value_int", 0))});
  }
  if (!a.has("value_ints"))
    fail(
        "no attribute holds the value; expected one of value, value_int, value_ints, value_float, "
        "value_floats, value_string, value_strings");
  for (int64_t v : a.get_ints("value_ints")) e.push_back(c.make(v));
  list(TN_INT64, e.size());
  set_known(c, 0, e);
}

void infer_constant_of_shape(Infer& c) {
  const tn_tensor* value = c.attrs().get_tensor("value");
  if (value)
    require(TensorView(*value).count() == 1,
            "attribute 'value' has shape " + dims_text(TensorView(*value).dims()) + "; expected one element");
  const tn_dtype dtype = value ? value->dtype : TN_FLOAT32;
  ranked(c, 0, "input", 1, 1);
  ranked(c, 0, "input", 1, 1);
  const auto dims = c.elements(0);
  if (!dims) {
    const auto length = c.has_rank(0) && c.rank(0) == 1 ? c.number(c.dims(0)[0]) : std::nullopt;
    if (length && *length <= 64) return c.set_unknown_dims(0, dtype, static_cast<uint32_t>(*length));
    return c.set_unranked(0, dtype);
  }
  for (tn_dim d : *dims)
    if (const auto v = c.number(d))
      require(*v >= 0, "operand input holds " + text_of(*v) + "; expected dimensions of 0 or more");
  if (const auto n = c.number(c.product(*dims)))
    require(*n <= INT64_MAX / 16, "shape " + c.text(*dims) + " has more elements than memory can hold");
  c.set(0, dtype, *dims);
  const auto n = numbers(c, *dims);
  if (!value || !n) return;
  const auto count = count_up_to(*n, max_known);
  const auto e = elements_of(c, *value);
  if (count && e && e->size() == 1)
    set_known(c, 0, std::vector<tn_dim>(static_cast<size_t>(*count), e->front()));
}

/// max(ceil((limit - start) / delta), 0), computed in float64 as the runtime does.
int64_t range_count(double start, double limit, double delta) {
  const double n = std::ceil((limit - start) / delta);
  if (!(n > 0)) return 0;
  require(n < 9e15, "the range has more elements than memory can hold");
  return static_cast<int64_t>(n);
}

/// The same in integers, exact at any size.
std::optional<int64_t> range_count(int64_t start, int64_t limit, int64_t delta) {
  if (delta > 0 ? start >= limit : start <= limit) return 0;
  const auto distance = delta > 0 ? static_cast<uint64_t>(limit) - static_cast<uint64_t>(start)
                                  : static_cast<uint64_t>(start) - static_cast<uint64_t>(limit);
  const uint64_t pace = delta > 0 ? static_cast<uint64_t>(delta) : uint64_t{0} - static_cast<uint64_t>(delta);
  const uint64_t n = (distance - 1) / pace + 1;
  return n > static_cast<uint64_t>(INT64_MAX / 16) ? std::nullopt
                                                   : std::optional<int64_t>(static_cast<int64_t>(n));
}

void infer_range(Infer& c) {
  const tn_dtype dtype = c.dtype(0) != TN_DTYPE_NONE ? c.dtype(0) : c.dtype(1);
  one_number(c, 0, "start");
  one_number(c, 1, "limit");
  one_number(c, 2, "delta");
  const auto start = c.elements(0), limit = c.elements(1), delta = c.elements(2);
  const auto one = [](const std::optional<std::vector<tn_dim>>& e) { return e && e->size() == 1; };
  const auto set_length = [&](tn_dim n) { c.set(0, dtype, {&n, 1}); };
  if (one(start) && one(limit) && one(delta)) {
    const auto s = c.number(start->front()), l = c.number(limit->front()), d = c.number(delta->front());
    require(d != 0, "operand delta is 0; expected a step other than 0");
    if (s && l && d) {
      const auto n = range_count(*s, *l, *d);
      require(n.has_value(), "the range has more elements than memory can hold");
      set_length(*n);
      if (*n > max_known) return;
      std::vector<tn_dim> e;
      for (int64_t i = 0; i < *n; ++i) e.push_back(c.make(*s + i * *d));
      return set_known(c, 0, e);
    }
    if (d) {  // the distance is an expression
      const tn_dim distance =
          *d > 0 ? c.sub(limit->front(), start->front()) : c.sub(start->front(), limit->front());
      const int64_t pace = *d == INT64_MIN ? INT64_MAX : *d > 0 ? *d : -*d;
      return set_length(most(c, pace == 1 ? distance : c.ceildiv(distance, pace), 0));
    }
  }
  const auto s = scalar_value(c, 0), l = scalar_value(c, 1), d = scalar_value(c, 2);
  if (s && l && d && is_float(dtype)) {
    require(*d != 0, "operand delta is 0; expected a step other than 0");
    require(std::isfinite(*s) && std::isfinite(*l) && std::isfinite(*d),
            "operands start, limit and delta must be finite");
    return set_length(range_count(*s, *l, *d));
  }
  set_length(c.data_dependent(0, 0));
}

}  // namespace

void add_constant(Plugin& p) {
  define(p, "Constant").infer<infer_constant>();
  define(p, "ConstantOfShape").infer<infer_constant_of_shape>().alias("fill");
  define(p, "Range").infer<infer_range>();
}

}  // namespace tenon::ops
