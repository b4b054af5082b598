// The kernels: records that say which nodes they take, and a plan that makes the state of one node.
#include <memory>

#include "parts.hpp"

namespace @NAMESPACE@ {

using namespace tenon::sdk;

namespace {

struct State {
  int64_t count;  // elements of the first operand
  uint32_t tiles;
};

// run_...: one tile of one node in one run, on any of the host's threads: no allocation, no call back into
// the host.

@KERNELS@// Called once for each node and set of shapes. What run needs of attributes and shapes goes into the state.
template <tn_kernel_fn Run>
void plan(const PlanView& view, Planned& planned) {
  auto s = std::make_unique<State>();
  s->count = view.input(0).count();
  s->tiles = tiles_for(s->count, 16384, view.threads());  // elements for one thread at least
  const uint32_t tiles = s->tiles;
  planned.set(Run, std::move(s), tiles);
}

}  // namespace

void add_kernels(Plugin& plugin) {
@ADD_KERNELS@}

}  // namespace @NAMESPACE@
