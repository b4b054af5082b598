// Cast and CastLike. Reals to integers truncate and saturate, NaN becomes 0; integers to narrower integers
// wrap.
#include <cinttypes>
#include <cstdlib>

#include "families.hpp"
#include "support/kernel.hpp"

namespace tenon::reference {
namespace {

constexpr int64_t grain = 64;  // elements; whole bytes of packed types

enum class PowerRounding { as_stored, down, nearest };
/// Only for the type of powers of two, whose storing rounds up.
double to_power(double x, PowerRounding rounding) noexcept {
  if (!(x > 0) || std::isinf(x)) return x;
  int exponent = 0;
  const double mantissa = std::frexp(x, &exponent);  // in [0.5, 1)
  return std::ldexp(1.0, rounding == PowerRounding::nearest && mantissa >= 0.75 ? exponent : exponent - 1);
}

template <class C>
struct CastState : Base {
  Load<C> load;
  Store<C> store;
  PowerRounding rounding = PowerRounding::as_stored;
};
template <class C>
int cast_fn(const tn_kernel_args* a, uint32_t tile, uint32_t) {
  const auto& s = state<CastState<C>>(a);
  const auto r = tile_range(s.out[0].count, s.tiles, tile, grain);
  C x[block];
  for (int64_t i = r.begin; i < r.end; i += block) {
    const int64_t n = std::min(block, r.end - i);
    s.load(a->inputs[0], i, 1, n, x);
    if constexpr (std::is_same_v<C, double>)
      if (s.rounding != PowerRounding::as_stored)
        for (int64_t k = 0; k < n; ++k) x[k] = to_power(x[k], s.rounding);
    s.store(x, n, a->outputs[0], i);
  }
  return run_ok;
}

struct SameState : Base {
  uint64_t bytes;
};
int same_fn(const tn_kernel_args* a, uint32_t, uint32_t) {
  const auto& s = state<SameState>(a);
  if (s.bytes) std::memcpy(a->outputs[0], a->inputs[0], s.bytes);
  return run_ok;
}

// Text to numbers: what strtod, strtoll read, after the standard's words for infinity and NaN, which strtod
// knows.
struct ParseState : Base {
  tn_dtype to;
};
int parse_fn(const tn_kernel_args* a, uint32_t, uint32_t) {
  const auto& s = state<ParseState>(a);
  const auto* text = in<tn_str>(a, 0);
  Store<double> store_real = nullptr;
  Store<int64_t> store_integer = nullptr;
  if (domain_of(s.to) == Domain::real || s.to == TN_BOOL)
    store_real = storer<double>(s.to);
  else
    store_integer = storer<int64_t>(s.to);
  for (int64_t i = 0; i < s.out[0].count; ++i) {
    char copy[64] = {};
    if (text[i].size >= sizeof copy)
      return run_fail(a, run_bad_operand, "a text to be cast to a number is longer than 63 characters");
    if (text[i].size) std::memcpy(copy, text[i].data, text[i].size);
    char* end = copy;
    if (store_real) {
      const double x = std::strtod(copy, &end);
      store_real(&x, 1, a->outputs[0], i);
    } else {
      int64_t x = s.to == TN_UINT64 ? static_cast<int64_t>(std::strtoull(copy, &end, 10))
                                    : std::strtoll(copy, &end, 10);
      if (*end == '.' || *end == 'e' || *end == 'E') x = saturate_to<int64_t>(std::strtod(copy, &end));
      store_integer(&x, 1, a->outputs[0], i);
    }
    if (end == copy || *end != 0)
      return run_fail(a, run_bad_operand, "a text to be cast to a number is not one; expected digits");
  }
  return run_ok;
}

void plan_cast(const PlanView& v, Planned& p) {
  const tn_dtype from = v.input(0).dtype(), to = v.output(0).dtype();
  const bool saturate = v.attrs().get_int("saturate", 1) != 0;
  if (from == to) {
    auto s = make_state<SameState>(v);
    s->bytes = packed_bytes(to, s->out[0].count);
    finish(v, p, same_fn, std::move(s), 1, 1);
    return;
  }
  if (from == TN_STRING) {
    auto s = make_state<ParseState>(v);
    s->to = to;
    (void)storer<double>(to);
    finish(v, p, parse_fn, std::move(s), 1, 1);
    return;
  }
  visit_domain(from, [&](auto c) {
    using C = decltype(c);
    auto s = make_state<CastState<C>>(v);
    s->load = loader<C>(from);
    s->store = storer<C>(to, saturate);
    const auto rounding = v.attrs().get_string("round_mode", "up");
    if (rounding != "up" && rounding != "down" && rounding != "nearest")
      fail("Cast's round_mode is '" + std::string(rounding) + "'; expected up, down or nearest");
    if (to == TN_FLOAT8_E8M0 && rounding != "up")
      s->rounding = rounding == "down" ? PowerRounding::down : PowerRounding::nearest;
    const int64_t n = s->out[0].count;
    finish(v, p, cast_fn<C>, std::move(s), (n + grain - 1) / grain, n);
  });
}

// Numbers to text: the shortest text that reads back as the same number of that type.
std::string text_of(const TensorView& t, int64_t i) {
  if (t.dtype() == TN_BOOL) return t.data<bool>()[i] ? "True" : "False";
  if (t.dtype() == TN_UINT64) return format("%" PRIu64, t.data<uint64_t>()[i]);
  double x = 0;
  loader<double>(t.dtype())(t.raw().data, i, 1, 1, &x);
  if (is_integer(t.dtype()))
    return format("%" PRId64, TN_DTYPE_BITS(t.dtype()) >= 8 ? t.int_at(i) : static_cast<int64_t>(x));
  if (x != x) return "NaN";
  if (std::isinf(x)) return x > 0 ? "INF" : "-INF";
  const int most = t.dtype() == TN_FLOAT64 ? 17 : 9;
  for (int digits = 1; digits < most; ++digits) {
    std::string s = format("%.*g", digits, x);
    const double back = std::strtod(s.c_str(), nullptr);
    if (t.dtype() == TN_FLOAT64 ? back == x : static_cast<float>(back) == static_cast<float>(x)) return s;
  }
  return format("%.*g", most, x);
}
void print_numbers(Run& run, const tn_kernel_args*) {
  const auto x = run.input(0);
  auto* y = static_cast<tn_str*>(run.output(0, TN_STRING, x.dims()));
  for (int64_t i = 0, n = x.count(); i < n; ++i)
    y[i] = x.dtype() == TN_STRING ? run.api->keep_text(run.run, x.data<tn_str>()[i])
                                  : run.api->keep_text(run.run, str(text_of(x, i)));
}
void plan_print(const PlanView&, Planned& p) { p.set(dynamic_kernel<print_numbers>); }

}  // namespace

void provide_cast(Plugin& p) {
  const std::vector<tn_dtype> numbers = {TN_FLOAT32,
                                         TN_FLOAT64,
                                         TN_FLOAT16,
                                         TN_BFLOAT16,
                                         TN_INT8,
                                         TN_INT16,
                                         TN_INT32,
                                         TN_INT64,
                                         TN_UINT8,
                                         TN_UINT16,
                                         TN_UINT32,
                                         TN_UINT64,
                                         TN_BOOL,
                                         TN_INT4,
                                         TN_UINT4,
                                         TN_INT2,
                                         TN_UINT2,
                                         TN_FLOAT8_E4M3FN,
                                         TN_FLOAT8_E4M3FNUZ,
                                         TN_FLOAT8_E5M2,
                                         TN_FLOAT8_E5M2FNUZ,
                                         TN_FLOAT8_E8M0,
                                         TN_FLOAT4_E2M1};
  for (const char* op : {"Cast", "CastLike"}) {
    reference_kernel(p, op).output(numbers).plan<plan_cast>();
    reference_kernel(p, op, "_to_text")
        .flags(TN_KERNEL_DYNAMIC_OUTPUT | TN_KERNEL_DYNAMIC_INPUT)
        .output({TN_STRING})
        .plan<plan_print>();
  }
}

}  // namespace tenon::reference
