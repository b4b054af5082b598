// The plugin "ops": the operators of ONNX and Tenon's fused ones, each with what defines its numbers: a
// decomposition, or a plain kernel that sums in float64 (the oracle).
#include "families.hpp"

namespace {

void provide(tenon::sdk::Plugin& p) {
  p.id(TENON_PLUGIN_ID).name(TENON_PLUGIN_NAME).version(TENON_PLUGIN_VERSION);
  p.vendor("Tenon").summary("Operators of ONNX and Tenon's fused ones, each with its reference kernel");
#define TENON_ADD(family) tenon::ops::add_##family(p);
  TENON_OPERATOR_FAMILIES(TENON_ADD)
#undef TENON_ADD
#define TENON_PROVIDE(family) tenon::reference::provide_##family(p);
  TENON_KERNEL_FAMILIES(TENON_PROVIDE)
#undef TENON_PROVIDE
}

}  // namespace

TENON_PLUGIN(provide)
