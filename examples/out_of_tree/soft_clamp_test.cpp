// The plugin without a host: its table, its kernel's numbers. The rule and the pass are tested with the
// program.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <string>

#include "acme.hpp"

extern "C" const tn_plugin* tenon_plugin_entry(uint32_t host_major);

namespace {

std::string text(tn_str s) { return std::string(s.data, s.size); }

template <class T>
const T* table(const char* id) {
  const tn_plugin* plugin = tenon_plugin_entry(TN_ABI_MAJOR);
  REQUIRE(plugin != nullptr);
  return static_cast<const T*>(plugin->get_interface(id));
}

}  // namespace

TEST_CASE("the entry is pure and serves one major") {
  const tn_plugin* plugin = tenon_plugin_entry(TN_ABI_MAJOR);
  REQUIRE(plugin != nullptr);
  CHECK(text(plugin->id) == "com.acme");
  CHECK(tenon_plugin_entry(TN_ABI_MAJOR) == plugin);
  CHECK(tenon_plugin_entry(TN_ABI_MAJOR + 1) == nullptr);
  CHECK(plugin->get_interface("com.acme.no-such-interface/1") == nullptr);
}

TEST_CASE("what the plugin provides") {
  const auto* ops = table<tn_op_list>(TN_OPS_ID);
  REQUIRE(ops != nullptr);
  REQUIRE(ops->count == 1);
  CHECK(text(ops->ops[0]->domain) + "::" + text(ops->ops[0]->name) == "com.acme::SoftClamp");
  const auto* kernels = table<tn_kernel_list>(TN_KERNELS_ID);
  REQUIRE(kernels != nullptr);
  CHECK(text(kernels->kernels[0]->op) == "com.acme::SoftClamp");
  const auto* passes = table<tn_pass_list>(TN_PASSES_ID);
  REQUIRE(passes != nullptr);
  CHECK(text(passes->passes[0]->id) == "drop_redundant_clip");
  const auto* rules = table<tn_rule_list>(TN_RULES_ID);
  REQUIRE(rules != nullptr);
  CHECK(text(rules->sources[0].text).find("\"rule\": \"AcmeSoftClamp\"") != std::string::npos);
}

TEST_CASE(
    "soft_clamp keeps small values, bounds large ones, and keeps NaN, infinities and the sign of zero") {
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
