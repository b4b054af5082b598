// A plugin built with an SDK one minor version newer, whose tables have grown; see CMakeLists.txt.
#include "tenon/sdk/plugin.hpp"

#ifdef NEEDS_NEWER
constexpr uint32_t needed = TN_ABI_MINOR;
#else
constexpr uint32_t needed = TN_ABI_MINOR - 1;
#endif

namespace {

using namespace tenon::sdk;

void look(Pass& pass) {
  // What came with the newer version is asked for before it is used.
  if (TN_HAS(pass.host(), later) || pass.service<void>("tenon.later/1") != nullptr)
    fail("the host has what only the newer version has");
}

void provide(Plugin& p) {
  static const int later = 0;
  p.id("test.newer").name("newer").version("1.0.0").vendor("Tenon").summary("built with a newer SDK");
  p.needs_host_minor(needed);
  p.provide("tenon.later/1", &later);
  p.pass("newer").summary("looks for what is newer").run<look>();
}

}  // namespace

TENON_PLUGIN(provide)
