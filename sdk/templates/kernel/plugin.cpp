#include "parts.hpp"

static void provide(tenon::sdk::Plugin& plugin) {
  plugin.id(TENON_PLUGIN_ID).name(TENON_PLUGIN_NAME).version(TENON_PLUGIN_VERSION);
  plugin.vendor("@VENDOR@").license("Apache-2.0").summary("@TYPE@: an operator and its kernel");
  @NAMESPACE@::add_operator(plugin);
  @NAMESPACE@::add_kernel(plugin);
}
TENON_PLUGIN(provide)
