#include "toy_kernels.hpp"

static void provide(tenon::sdk::Plugin& plugin) {
  plugin.id(TENON_PLUGIN_ID).name(TENON_PLUGIN_NAME).version(TENON_PLUGIN_VERSION);
  plugin.summary("a device to learn and test with, on threads of the host");
  plugin.device(tenon::sdk::device_record<toy::Device>("toy", "threads of this process"));
  toy::add_kernels(plugin);
}
TENON_PLUGIN(provide)
