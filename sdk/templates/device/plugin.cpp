#include "kernels.hpp"

static void provide(tenon::sdk::Plugin& plugin) {
  plugin.id(TENON_PLUGIN_ID).name(TENON_PLUGIN_NAME).version(TENON_PLUGIN_VERSION);
  plugin.vendor("@VENDOR@").license("Apache-2.0").summary("the device @NAME@");
  plugin.device(tenon::sdk::device_record<@NAMESPACE@::Device>("@NAME@", "threads of this process"));
  @NAMESPACE@::add_kernels(plugin);
}
TENON_PLUGIN(provide)
