#include "soft_clamp.hpp"

static void provide(tenon::sdk::Plugin& plugin) {
  plugin.id(TENON_PLUGIN_ID).name(TENON_PLUGIN_NAME).version(TENON_PLUGIN_VERSION);
  plugin.vendor("Acme").license("Apache-2.0").summary("SoftClamp: an operator and its kernel");
  acme::add_operator(plugin);
  acme::add_kernel(plugin);
}
TENON_PLUGIN(provide)
