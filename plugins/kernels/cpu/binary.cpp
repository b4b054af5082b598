// Element-wise operators of two operands with broadcasting: dims that both operands walk, or repeat, alike
// are merged; what is left is a loop over rows, each one vector call.
#include "families.hpp"
#include "rows.hpp"
#include "simd.hpp"

namespace tenon::cpu {

using namespace sdk;

namespace {

struct Loop {
  int64_t size, a, b;
};  // strides in elements; 0: repeated

struct State {
  Binary op;
  std::vector<Loop> outer;  // outermost first
  int64_t rows, n;
  int a_step, b_step;
  uint32_t tiles;
};

int run(const tn_kernel_args* args, uint32_t tile, uint32_t) noexcept {
  const auto& s = state<State>(args);
  const float *a = in<float>(args, 0), *b = in<float>(args, 1);
  float* y = out<float>(args);
  if (s.rows == 1) {  // split the one row
    const Range r = tile_range(s.n, s.tiles, tile, 16);
    if (r.begin < r.end)
      binary_row(s.op, a + (s.a_step ? r.begin : 0), s.a_step, b + (s.b_step ? r.begin : 0), s.b_step,
                 y + r.begin, r.end - r.begin);
    return 0;
  }
  const Range r = tile_range(s.rows, s.tiles, tile);
  for (int64_t row = r.begin; row < r.end; ++row) {
    int64_t rest = row, ao = 0, bo = 0;
    for (size_t i = s.outer.size(); i-- > 0;) {
      const Loop& l = s.outer[i];
      const int64_t at = rest % l.size;
      rest /= l.size;
      ao += at * l.a;
      bo += at * l.b;
    }
    binary_row(s.op, a + ao, s.a_step, b + bo, s.b_step, y + row * s.n, s.n);
  }
  return 0;
}

struct Entry {
  const char* op;
  const char* id;  // of the kernel
  Binary binary;
};
constexpr Entry entries[] = {{"Add", "add", Binary::Add}, {"Sub", "sub", Binary::Sub},
                             {"Mul", "mul", Binary::Mul}, {"Div", "div", Binary::Div},
                             {"Max", "max", Binary::Max}, {"Min", "min", Binary::Min},
                             {"Sum", "sum", Binary::Add}};

void plan(const PlanView& v, Planned& p) {
  allow_simd(v.cpu_features());
  const auto op = binary_of(v.op_name());
  if (!op) decline("this kernel has no " + std::string(v.op_name()));
  const auto a = v.input(0).dims(), b = v.input(1).dims(), y = v.output().dims();
  std::vector<Loop> loops;
  int64_t sa = 1, sb = 1;
  for (size_t back = 1; back <= y.size(); ++back) {  // innermost first
    const int64_t n = y[y.size() - back];
    const int64_t da = back <= a.size() ? a[a.size() - back] : 1,
                  db = back <= b.size() ? b[b.size() - back] : 1;
    if (n == 1) continue;
    const Loop l{n, da == 1 ? 0 : sa, db == 1 ? 0 : sb};
    sa *= da, sb *= db;
    if (!loops.empty()) {
      Loop& o = loops.back();
      const auto goes_on = [&](int64_t inner, int64_t outer) {
        return inner == 0 ? outer == 0 : outer == inner * o.size;
      };
      if (goes_on(o.a, l.a) && goes_on(o.b, l.b)) {
        o.size *= n;
        continue;
      }
    }
    loops.push_back(l);
  }
  auto s = std::make_unique<State>();
  s->op = *op;
  s->n = 1;
  s->rows = 1;
  if (!loops.empty()) {
    s->n = loops[0].size;
    s->a_step = loops[0].a != 0, s->b_step = loops[0].b != 0;
    for (size_t i = loops.size(); i-- > 1;) {
      s->outer.push_back(loops[i]);
      s->rows *= loops[i].size;
    }
  }
  if (v.output().count() == 0) s->rows = 0;
  s->tiles = tiles_for(s->rows * s->n, 32768, v.threads());
  if (s->rows > 1) s->tiles = static_cast<uint32_t>(std::min<int64_t>(s->tiles, s->rows));
  const uint32_t tiles = s->tiles;
  p.set(run, std::move(s), tiles);
}

/// Max, Min and Sum take any number of operands; this kernel takes two.
void match_two(const PlanView& v) {
  if (v.input_count() != 2) decline(format("%u operands, this kernel has 2", v.input_count()));
}

}  // namespace

std::optional<Binary> binary_of(std::string_view op) {
  for (const Entry& e : entries)
    if (op == e.op) return e.binary;
  return std::nullopt;
}

void provide_binary(Plugin& p) {
  for (const Entry& e : entries)
    p.kernel("tenon.cpu." + std::string(e.id) + "/1", e.op)
        .flags(TN_KERNEL_DETERMINISTIC)
        .input({TN_FLOAT32})
        .input({TN_FLOAT32})
        .in_place(0, 0)
        .in_place(0, 1)
        .match<match_two>()
        .plan<plan>();
}

}  // namespace tenon::cpu
