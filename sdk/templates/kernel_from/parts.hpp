// What this plugin provides; each function adds its part to the plugin's table.
#pragma once
#include "tenon/sdk/plugin.hpp"

namespace @NAMESPACE@ {

void add_operators(tenon::sdk::Plugin& plugin);
void add_kernels(tenon::sdk::Plugin& plugin);

}  // namespace @NAMESPACE@
