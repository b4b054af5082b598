// The kernel: a record that says which nodes it takes, and a plan that makes the state of one node.
#include <memory>

#include "parts.hpp"

namespace @NAMESPACE@ {

using namespace tenon::sdk;

namespace {

struct State {
  int64_t count;
  uint32_t tiles;
  float slope;
};

// One tile of one node in one run, on any of the host's threads: no allocation, no call back into the host.
int run(const tn_kernel_args* args, uint32_t tile, uint32_t) {
  const State& s = state<State>(args);
  const Range range = tile_range(s.count, s.tiles, tile, 16);
  const float* x = in<float>(args, 0);
  float* y = out<float>(args);
  for (int64_t i = range.begin; i < range.end; ++i) y[i] = x[i] < 0 ? s.slope * x[i] : x[i];
  return 0;
}

// Called once for each node and set of shapes.
void plan(const PlanView& view, Planned& planned) {
  auto s = std::make_unique<State>();
  s->count = view.input(0).count();
  s->slope = static_cast<float>(view.attrs().get_float("slope", 0.01));
  s->tiles = tiles_for(s->count, 16384, view.threads());  // elements for one thread at least
  const uint32_t tiles = s->tiles;
  planned.set(run, std::move(s), tiles);
}

}  // namespace

void add_kernel(Plugin& plugin) {
  plugin.kernel("@ID@.kernel/1", "@DOMAIN@::@TYPE@")
      .input({TN_FLOAT32})
      .output({TN_FLOAT32})
      .in_place(0, 0)
      .flags(TN_KERNEL_DETERMINISTIC)
      .plan<plan>();
}

}  // namespace @NAMESPACE@
