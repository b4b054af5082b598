// The kernel: a record that says which nodes it takes, and a plan that makes the state of one node.
#include <cmath>
#include <memory>

#include "soft_clamp.hpp"

namespace acme {

using namespace tenon::sdk;

void soft_clamp(const float* x, float* y, int64_t count, float limit) noexcept {
  for (int64_t i = 0; i < count; ++i) y[i] = limit * std::tanh(x[i] / limit);
}

namespace {

struct State {
  int64_t count;
  uint32_t tiles;
  float limit;
};

// One tile of one node in one run, on any of the host's threads: no allocation, no call back into the host.
int run(const tn_kernel_args* args, uint32_t tile, uint32_t) {
  const State& s = state<State>(args);
  const Range range = tile_range(s.count, s.tiles, tile, 16);
  soft_clamp(in<float>(args, 0) + range.begin, out<float>(args) + range.begin, range.end - range.begin,
             s.limit);
  return 0;
}

// Called once for each node and set of shapes.
void plan(const PlanView& view, Planned& planned) {
  auto s = std::make_unique<State>();
  s->count = view.input(0).count();
  s->limit = static_cast<float>(view.attrs().get_float("limit", 0));
  s->tiles = tiles_for(s->count, 4096, view.threads());
  const uint32_t tiles = s->tiles;
  planned.set(run, std::move(s), tiles);
}

}  // namespace

void add_kernel(Plugin& plugin) {
  plugin.kernel("com.acme.soft_clamp/1", "com.acme::SoftClamp")
      .input({TN_FLOAT32})
      .output({TN_FLOAT32})
      .in_place(0, 0)
      .flags(TN_KERNEL_DETERMINISTIC)
      .plan<plan>();
}

}  // namespace acme
