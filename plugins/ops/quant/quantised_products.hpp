#pragma once
#include "tenon/sdk/plugin.hpp"

namespace tenon::ops {

/// tenon::QuantizedConv, tenon::QuantizedGemm; part of the family quantize.
void add_quantised_products(sdk::Plugin& p);

}  // namespace tenon::ops
