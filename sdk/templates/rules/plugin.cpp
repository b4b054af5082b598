#include "tenon/sdk/plugin.hpp"
#include "tenon_plugin_rules.hpp"  // made by tenon_add_plugin from rules/*.json

static void provide(tenon::sdk::Plugin& plugin) {
  plugin.id(TENON_PLUGIN_ID).name(TENON_PLUGIN_NAME).version(TENON_PLUGIN_VERSION);
  plugin.vendor("@VENDOR@").license("Apache-2.0").summary("fusion rules");
  static constexpr tn_rule_list rules = {
      sizeof(tn_rule_list), sizeof tenon_plugin_rules / sizeof *tenon_plugin_rules, tenon_plugin_rules};
  plugin.provide(TN_RULES_ID, &rules);
}
TENON_PLUGIN(provide)
