// Functions of two operands with broadcasting: arithmetic, comparisons, logic, bits, PRelu, Pow. Integers
// wrap; a division or remainder by zero gives 0.
#include "families.hpp"
#include "support/kernel.hpp"

namespace tenon::reference {
namespace {

template <class C>
using Block2 = void (*)(const C* a, const C* b, C* y, int64_t n);
template <class C, class F>
void block2(const C* a, const C* b, C* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = F::at(a[i], b[i]);
}

template <class C>
constexpr bool real = std::is_same_v<C, double>;
template <class C>
constexpr bool is_signed = std::is_same_v<C, int64_t>;

// Two's complement without undefined overflow.
template <class C>
C wrap(uint64_t x) noexcept {
  return static_cast<C>(x);
}
template <class C>
uint64_t u(C x) noexcept {
  return static_cast<uint64_t>(x);
}

struct AddF {
  template <class C>
  static C at(C a, C b) noexcept {
    if constexpr (real<C>)
      return a + b;
    else
      return wrap<C>(u(a) + u(b));
  }
};
struct SubF {
  template <class C>
  static C at(C a, C b) noexcept {
    if constexpr (real<C>)
      return a - b;
    else
      return wrap<C>(u(a) - u(b));
  }
};
struct MulF {
  template <class C>
  static C at(C a, C b) noexcept {
    if constexpr (real<C>)
      return a * b;
    else
      return wrap<C>(u(a) * u(b));
  }
};
struct DivF {
  template <class C>
  static C at(C a, C b) noexcept {
    if constexpr (real<C>)
      return a / b;
    else if (b == 0)
      return 0;
    else if (is_signed<C> && b == static_cast<C>(-1))
      return wrap<C>(0 - u(a));
    else
      return a / b;
  }
};
/// Sign of the divisor, as Python's %.
struct ModF {
  template <class C>
  static C at(C a, C b) noexcept {
    if constexpr (real<C>) {
      const double r = std::fmod(a, b);
      if (r != 0) return (r < 0) != (b < 0) ? r + b : r;
      return r == r ? std::copysign(0.0, b) : r;
    } else {
      if (b == 0 || (is_signed<C> && b == static_cast<C>(-1))) return 0;
      const C r = a % b;
      return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    }
  }
};
/// Sign of the dividend, as C's fmod.
struct FmodF {
  template <class C>
  static C at(C a, C b) noexcept {
    if constexpr (real<C>)
      return std::fmod(a, b);
    else
      return b == 0 || (is_signed<C> && b == static_cast<C>(-1)) ? 0 : a % b;
  }
};
struct PReluF {
  template <class C>
  static C at(C x, C slope) noexcept {
    if constexpr (real<C>)
      return x < 0 ? x * slope : x;
    else
      return x < 0 ? wrap<C>(u(x) * u(slope)) : x;
  }
};
struct PowF {
  template <class C>
  static C at(C a, C b) noexcept {
    if constexpr (real<C>)
      return std::pow(a, b);
    else {
      if (is_signed<C> && b < 0) return a == 1 ? 1 : a == static_cast<C>(-1) ? (b % 2 ? a : 1) : 0;
      uint64_t r = 1, base = u(a);
      for (uint64_t e = u(b); e; e >>= 1, base *= base)
        if (e & 1) r *= base;
      return wrap<C>(r);
    }
  }
};
struct EqualF {
  template <class C>
  static C at(C a, C b) noexcept {
    return a == b;
  }
};
struct GreaterF {
  template <class C>
  static C at(C a, C b) noexcept {
    return a > b;
  }
};
struct GreaterOrEqualF {
  template <class C>
  static C at(C a, C b) noexcept {
    return a >= b;
  }
};
struct LessF {
  template <class C>
  static C at(C a, C b) noexcept {
    return a < b;
  }
};
struct LessOrEqualF {
  template <class C>
  static C at(C a, C b) noexcept {
    return a <= b;
  }
};
struct AndF {
  template <class C>
  static C at(C a, C b) noexcept {
    if constexpr (real<C>)
      return 0;
    else
      return a & b;
  }
};
struct OrF {
  template <class C>
  static C at(C a, C b) noexcept {
    if constexpr (real<C>)
      return 0;
    else
      return a | b;
  }
};
struct XorF {
  template <class C>
  static C at(C a, C b) noexcept {
    if constexpr (real<C>)
      return 0;
    else
      return a ^ b;
  }
};
struct ShiftLeftF {
  template <class C>
  static C at(C a, C b) noexcept {
    if constexpr (real<C>)
      return 0;
    else
      return u(b) < 64 ? wrap<C>(u(a) << u(b)) : 0;
  }
};
struct ShiftRightF {
  template <class C>
  static C at(C a, C b) noexcept {
    if constexpr (real<C>)
      return 0;
    else
      return u(b) < 64 ? a >> u(b) : a < 0 ? static_cast<C>(-1) : 0;
  }
};

template <class C>
struct Named {
  const char* name;
  Block2<C> f;
};
template <class C>
Block2<C> find(std::string_view name) {
  static constexpr Named<C> table[] = {{"Add", block2<C, AddF>},
                                       {"Sub", block2<C, SubF>},
                                       {"Mul", block2<C, MulF>},
                                       {"Div", block2<C, DivF>},
                                       {"Mod", block2<C, ModF>},
                                       {"Fmod", block2<C, FmodF>},
                                       {"PRelu", block2<C, PReluF>},
                                       {"Pow", block2<C, PowF>},
                                       {"Equal", block2<C, EqualF>},
                                       {"Greater", block2<C, GreaterF>},
                                       {"GreaterOrEqual", block2<C, GreaterOrEqualF>},
                                       {"Less", block2<C, LessF>},
                                       {"LessOrEqual", block2<C, LessOrEqualF>},
                                       {"And", block2<C, AndF>},
                                       {"Or", block2<C, OrF>},
                                       {"Xor", block2<C, XorF>},
                                       {"BitwiseAnd", block2<C, AndF>},
                                       {"BitwiseOr", block2<C, OrF>},
                                       {"BitwiseXor", block2<C, XorF>},
                                       {"ShiftLeft", block2<C, ShiftLeftF>},
                                       {"ShiftRight", block2<C, ShiftRightF>}};
  for (const auto& t : table)
    if (name == t.name) return t.f;
  return nullptr;
}

template <class C>
struct State2 : Base {
  Walk<2> walk;
  Load<C> load[2];
  Store<C> store;
  Block2<C> f;
};
template <class C>
int fn2(const tn_kernel_args* args, uint32_t tile, uint32_t) {
  const auto& s = state<State2<C>>(args);
  const auto r = tile_range(s.out[0].count, s.tiles, tile);
  const int64_t stride[2] = {s.walk.inner_stride(0), s.walk.inner_stride(1)};
  C a[block], b[block], y[block];
  s.walk.rows(r.begin, r.end, [&](int64_t at, const int64_t(&offset)[2], int64_t n) {
    for (int64_t i = 0; i < n; i += block) {
      const int64_t m = std::min(block, n - i);
      s.load[0](args->inputs[0], offset[0] + i * stride[0], stride[0], m, a);
      s.load[1](args->inputs[1], offset[1] + i * stride[1], stride[1], m, b);
      s.f(a, b, y, m);
      s.store(y, m, args->outputs[0], at + i);
    }
  });
  return run_ok;
}
template <class C>
void plan_as(const PlanView& v, Planned& p, std::string_view function) {
  auto s = make_state<State2<C>>(v);
  s->walk = broadcast_walk<2>(s->out[0].dims, {&s->in[0].dims, &s->in[1].dims});
  s->load[0] = loader<C>(s->in[0].dtype);
  s->load[1] = loader<C>(s->in[1].dtype);
  s->store = storer<C>(s->out[0].dtype);
  s->f = find<C>(function);
  const int64_t n = s->out[0].count;
  finish(v, p, fn2<C>, std::move(s), n, n * 2);
}

// Equal on text.
struct TextState : Base {
  Walk<2> walk;
};
int text_equal_fn(const tn_kernel_args* args, uint32_t tile, uint32_t) {
  const auto& s = state<TextState>(args);
  const auto r = tile_range(s.out[0].count, s.tiles, tile);
  const auto *a = in<tn_str>(args, 0), *b = in<tn_str>(args, 1);
  s.walk.rows(r.begin, r.end, [&](int64_t at, const int64_t(&offset)[2], int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      out<bool>(args)[at + i] =
          view(a[offset[0] + i * s.walk.inner_stride(0)]) == view(b[offset[1] + i * s.walk.inner_stride(1)]);
  });
  return run_ok;
}

void plan_binary(const PlanView& v, Planned& p) {
  std::string op(v.op_name());
  const tn_dtype dtype = v.input(0).dtype();
  if (dtype == TN_STRING) {
    if (op != "Equal") fail(op + " does not take text");
    auto s = make_state<TextState>(v);
    s->walk = broadcast_walk<2>(s->out[0].dims, {&s->in[0].dims, &s->in[1].dims});
    const int64_t n = s->out[0].count;
    finish(v, p, text_equal_fn, std::move(s), n, n * 8);
    return;
  }
  if (op == "Mod" && v.attrs().get_int("fmod", 0)) op = "Fmod";
  if (op == "BitShift") {
    const auto direction = v.attrs().get_string("direction", "");
    if (direction != "LEFT" && direction != "RIGHT")
      fail("BitShift's direction is '" + std::string(direction) + "'; expected LEFT or RIGHT");
    op = direction == "LEFT" ? "ShiftLeft" : "ShiftRight";
  }
  // A base of integers with real exponents is computed in reals, then brought back.
  Domain domain = domain_of(dtype);
  if (op == "Pow" && domain_of(v.input(1).dtype()) == Domain::real) domain = Domain::real;
  if (op == "Pow" && domain == Domain::unsigned_integer) domain = Domain::signed_integer;
  if (domain == Domain::real)
    plan_as<double>(v, p, op);
  else if (domain == Domain::signed_integer)
    plan_as<int64_t>(v, p, op);
  else
    plan_as<uint64_t>(v, p, op);
}

}  // namespace

void provide_binary(Plugin& p) {
  // In place only where all three types agree: equal bytes then mean equal shapes.
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Mod", "And", "Or", "Xor", "BitShift", "BitwiseAnd",
                         "BitwiseOr", "BitwiseXor", "PRelu"})
    reference_kernel(p, op).in_place(0, 0).in_place(0, 1).plan<plan_binary>();
  reference_kernel(p, "Pow").in_place(0, 0).plan<plan_binary>();
  for (const char* op : {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"})
    reference_kernel(p, op).plan<plan_binary>();
}

}  // namespace tenon::reference
