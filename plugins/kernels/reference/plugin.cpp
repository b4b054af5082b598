// The oracle's plugin: plain, complete kernels whose sums are float64.
#include "families.hpp"

static void provide(tenon::sdk::Plugin& p) {
  p.id("tenon.reference")
      .name("reference")
      .version("1.0.0")
      .vendor("Tenon")
      .summary("Exact kernels for every operator; the oracle");
#define TENON_PROVIDE(family) tenon::reference::provide_##family(p);
  TENON_REFERENCE_FAMILIES(TENON_PROVIDE)
#undef TENON_PROVIDE
}
TENON_PLUGIN(provide)
