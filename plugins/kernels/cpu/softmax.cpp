// Softmax and LogSoftmax over the last axis.
#include "families.hpp"
#include "rows.hpp"
#include "simd.hpp"

namespace tenon::cpu {

using namespace sdk;

namespace {

struct State {
  int64_t rows, n;
  uint32_t tiles;
  bool log;
};

int run(const tn_kernel_args* a, uint32_t tile, uint32_t) noexcept {
  const auto& s = state<State>(a);
  const Range r = tile_range(s.rows, s.tiles, tile);
  for (int64_t i = r.begin; i < r.end; ++i)
    softmax_row(in<float>(a, 0) + i * s.n, out<float>(a) + i * s.n, s.n, s.log);
  return 0;
}

void match(const PlanView& v) {
  const int64_t rank = v.input(0).rank(), axis = v.attrs().get_int("axis", -1);
  if (rank < 0 ? axis != -1 : axis != -1 && axis != rank - 1) decline("the axis is not the last one");
}

template <bool Log>
void plan(const PlanView& v, Planned& p) {
  allow_simd(v.cpu_features());
  const auto x = v.input(0);
  if (x.rank() == 0) decline("a scalar");
  const int64_t n = x.dim(-1), count = x.count();
  const int64_t rows = count ? count / n : 0;
  const auto tiles = static_cast<uint32_t>(
      std::min<int64_t>(tiles_for(count, 4096, v.threads()), std::max<int64_t>(rows, 1)));
  p.set(run, std::make_unique<State>(State{rows, n, tiles, Log}), tiles);
}

}  // namespace

void provide_softmax(Plugin& p) {
  p.kernel("tenon.cpu.softmax/1", "Softmax")
      .flags(TN_KERNEL_DETERMINISTIC)
      .input({TN_FLOAT32})
      .in_place(0, 0)
      .match<match>()
      .plan<plan<false>>();
  p.kernel("tenon.cpu.log_softmax/1", "LogSoftmax")
      .flags(TN_KERNEL_DETERMINISTIC)
      .input({TN_FLOAT32})
      .in_place(0, 0)
      .match<match>()
      .plan<plan<true>>();
}

}  // namespace tenon::cpu
