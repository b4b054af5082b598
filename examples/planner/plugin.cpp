#include "tenon/sdk/plugin.hpp"
#include "breadth.hpp"

static void provide(tenon::sdk::Plugin& plugin) {
  plugin.id(TENON_PLUGIN_ID).name(TENON_PLUGIN_NAME).version(TENON_PLUGIN_VERSION);
  plugin.vendor("Acme").license("Apache-2.0").summary("a memory planner: greedy by breadth");
  static tenon::sdk::PlannerBuilder planner("com.acme.greedy-by-breadth/1",
                                            "the widest step first, its largest buffer first", /*rank=*/45);
  plugin.planner(planner.plan<acme::plan_by_breadth>().record());
}
TENON_PLUGIN(provide)
