// The plugin without a host: its table, and its kernel's numbers.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <string>

#include "soft_clamp.hpp"

extern "C" const tn_plugin* tenon_plugin_entry(uint32_t host_major);

TEST_CASE("the entry is pure, serves one major, and gives what the plugin has") {
  const tn_plugin* plugin = tenon_plugin_entry(TN_ABI_MAJOR);
  REQUIRE(plugin != nullptr);
  CHECK(std::string(plugin->id.data, plugin->id.size) == "com.acme.soft_clamp");
  CHECK(tenon_plugin_entry(TN_ABI_MAJOR) == plugin);
  CHECK(tenon_plugin_entry(TN_ABI_MAJOR + 1) == nullptr);
  CHECK(plugin->get_interface("com.acme.no-such-interface/1") == nullptr);
  const auto* kernels = static_cast<const tn_kernel_list*>(plugin->get_interface(TN_KERNELS_ID));
  REQUIRE(kernels != nullptr);
  REQUIRE(kernels->count == 1);
  CHECK(std::string(kernels->kernels[0]->op.data, kernels->kernels[0]->op.size) == "com.acme::SoftClamp");
}

TEST_CASE("small values stay, large ones are bounded; NaN, infinities and the sign of zero are kept") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const float x[] = {0.0f, -0.0f, 1e-3f, 4.0f, -4.0f, 1e30f, infinity, -infinity, std::nanf("")};
  float y[9];
  acme::soft_clamp(x, y, 9, 4.0f);
  CHECK(y[0] == 0.0f);
  CHECK(std::signbit(y[1]));
  CHECK(y[2] == Approx(1e-3f));
  CHECK(y[3] == Approx(4.0 * std::tanh(1.0)));
  CHECK(y[4] == -y[3]);
  CHECK(y[5] == 4.0f);
  CHECK(y[6] == 4.0f);
  CHECK(y[7] == -4.0f);
  CHECK(std::isnan(y[8]));
}
