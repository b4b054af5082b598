// What this plugin provides; each function adds its part to the plugin's table.
//
// @DOMAIN@::@TYPE@: Y = X where X > 0, and slope * X elsewhere, element by element. NaN stays NaN.
#pragma once
#include "tenon/sdk/plugin.hpp"

namespace @NAMESPACE@ {

void add_operator(tenon::sdk::Plugin& plugin);
void add_kernel(tenon::sdk::Plugin& plugin);

}  // namespace @NAMESPACE@
