// One source, two plugins: all symbols of one are in the other too, with other contents (TWIN). Opened in one
// process each must see its own: inline variables, statics of templates, thread-locals, exceptions, and
// generated protobuf code.
#include <tenon/abi/core.h>

#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <typeinfo>

#if defined(HAS_PROTOBUF)
#include "twin.pb.h"
#endif

namespace twins {

inline int opened = 0;  // one variable in a program, by the language's rule; one a plugin, by the boundary's

template <class T>
struct Registry {
  static std::string& name() {
    static std::string text = TWIN;
    return text;
  }
};

thread_local std::string on_this_thread = TWIN;

struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
  virtual const char* whose() const { return TWIN; }
};

__attribute__((noinline)) void fail() { throw Fault("as planned"); }

std::string own_view() {
  ++opened;
  std::string seen = std::to_string(opened) + " " + Registry<int>::name() + " " + on_this_thread;
  try {
    fail();
  } catch (const Fault& fault) {
    seen += std::string(" ") + fault.whose();
  }
#if defined(HAS_PROTOBUF)
  tenon::test::Twin message;
  message.set_name(TWIN);
  message.add_values(opened);
  tenon::test::Twin back;
  seen += back.ParseFromString(message.SerializeAsString())
              ? " " + back.name() + std::to_string(back.values(0))
              : " unreadable";
#endif
  return seen;
}

}  // namespace twins

namespace {

tn_str text(const char* zero_terminated) { return {zero_terminated, std::strlen(zero_terminated)}; }

const void* interface_of(const char*) { return nullptr; }

tn_status open_instance(const tn_host*, const tn_diag* diag, void** instance) {
  const std::string seen = twins::own_view();
  diag->report(diag->context, TN_SEVERITY_INFO, text("T1"), text(TENON_PLUGIN_ID),
               {seen.data(), seen.size()});
  *instance = nullptr;
  return TN_OK;
}

void close_instance(void*) {}

}  // namespace

extern "C" __attribute__((visibility("default"))) const tn_plugin* tenon_plugin_entry(uint32_t host_major) {
  if (host_major != TN_ABI_MAJOR) return nullptr;
  static const tn_plugin table = [] {
    tn_plugin plugin{};
    plugin.size = sizeof plugin;
    plugin.abi_major = TN_ABI_MAJOR;
    plugin.id = text(TENON_PLUGIN_ID);
    plugin.name = text(TENON_PLUGIN_NAME);
    plugin.version = text(TENON_PLUGIN_VERSION);
    plugin.get_interface = &interface_of;
    plugin.open = &open_instance;
    plugin.close = &close_instance;
    return plugin;
  }();
  return &table;
}
