// The plugin "ops": definitions of ai.onnx (opset 28) and of Tenon's fused operators.
#include "families.hpp"

namespace {

void provide(tenon::sdk::Plugin& p) {
  p.id(TENON_PLUGIN_ID).name(TENON_PLUGIN_NAME).version(TENON_PLUGIN_VERSION);
  p.vendor("Tenon").summary("Operator definitions: ai.onnx and Tenon's fused operators");
#define TENON_OPS_ADD(family) tenon::ops::add_##family(p);
  TENON_OPS_FAMILIES(TENON_OPS_ADD)
#undef TENON_OPS_ADD
}

}  // namespace

TENON_PLUGIN(provide)
