// One source, one bad plugin a definition: what a host must survive. Plain C++ against the boundary, without
// the SDK, which would not let most of this happen.
#include <tenon/abi/core.h>
#include <tenon/abi/pass.h>

#include <unistd.h>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#define EXPORT extern "C" __attribute__((visibility("default")))

#ifndef PLUGIN_VERSION
#define PLUGIN_VERSION "1.0.0"
#endif
#ifndef PLUGIN_ID
#define PLUGIN_ID "test." PLUGIN_NAME
#endif

namespace {

constexpr tn_str text(const char* zero_terminated) {
  return {zero_terminated, __builtin_strlen(zero_terminated)};
}

#if defined(THROWS_IN_CONSTRUCTOR)
struct Static {
  Static() {
    if (std::getenv("TENON_TEST_QUIET") == nullptr) throw std::runtime_error("no licence found");
  }
} at_load;
#elif defined(CRASHES_ON_LOAD)
struct Static {
  Static() {
    std::raise(SIGSEGV);  // a wild pointer's store may be optimised away
  }
} at_load;
#elif defined(ABORTS_ON_LOAD)
struct Static {
  Static() { std::abort(); }
} at_load;
#elif defined(EXITS_ON_LOAD)
struct Static {
  Static() { std::_Exit(7); }
} at_load;
#elif defined(HANGS_ON_LOAD)
struct Static {
  Static() {
    for (;;) sleep(1);
  }
} at_load;
#endif

#if defined(MISSING_DEPENDENCY)
extern "C" int tenon_test_gone_function();
const int needs_library = tenon_test_gone_function();
#endif
#if defined(UNDEFINED_SYMBOL)
extern "C" int tenon_test_function_nobody_has();
const int needs_symbol = tenon_test_function_nobody_has();
#endif

tn_status run_nothing(void*, const tn_pass_ctx*, const tn_diag*) { return TN_OK; }

tn_pass_record make_pass(const char* id) {
  tn_pass_record record{};
  record.size = sizeof record;
  record.id = text(id);
  record.summary = text("does nothing");
  record.level = 1;
  record.run = &run_nothing;
  return record;
}

[[maybe_unused]] const void* interface_of(const char* id) {
  if (std::strcmp(id, TN_PASSES_ID) != 0) return nullptr;
  static const tn_pass_record good = make_pass(PLUGIN_NAME "_pass");
#if defined(MALFORMED_RECORDS)
  static const tn_pass_record without_run = [] {
    tn_pass_record record = make_pass("without_run");
    record.run = nullptr;
    return record;
  }();
  static const tn_pass_record small = [] {
    tn_pass_record record = make_pass("small");
    record.size = 16;
    return record;
  }();
  static const tn_pass_record* const passes[] = {&good, &without_run, &small, nullptr};
#else
  static const tn_pass_record* const passes[] = {&good};
#endif
  static const tn_pass_list list = {sizeof(tn_pass_list), sizeof passes / sizeof *passes, passes};
  return &list;
}

[[maybe_unused]] tn_status open_instance(const tn_host*, const tn_diag* diag, void** instance) {
#if defined(THROWS_IN_OPEN)
  throw std::runtime_error("the accelerator is on fire");
#elif defined(FAILS_IN_OPEN)
  diag->report(diag->context, TN_SEVERITY_ERROR, text(""), text(""), text("no device /dev/acme0"));
  return TN_ERR_IO;
#elif defined(CRASHES_IN_OPEN)
  std::raise(SIGSEGV);
#endif
  (void)diag;
  *instance = nullptr;
  return TN_OK;
}

[[maybe_unused]] void close_instance(void*) {}

}  // namespace

#if !defined(MISSING_SYMBOL)
EXPORT const tn_plugin* tenon_plugin_entry(uint32_t host_major) {
#if defined(WRONG_MAJOR)
  if (host_major != 2) return nullptr;
#else
  if (host_major != TN_ABI_MAJOR) return nullptr;
#endif
  static const char* const interfaces[] = {TN_PASSES_ID};
  static const tn_plugin table = [] {
    tn_plugin plugin{};
    plugin.size = sizeof plugin;
    plugin.abi_major = TN_ABI_MAJOR;
#if defined(NEEDS_NEWER_HOST)
    plugin.min_host_minor = 99;
    plugin.built_host_minor = 99;
#endif
#if defined(SMALL_TABLE)
    plugin.size = 24;
#endif
    plugin.id = text(PLUGIN_ID);
    plugin.name = text(PLUGIN_NAME);
    plugin.version = text(PLUGIN_VERSION);
    plugin.vendor = text("tests");
    plugin.license = text("Apache-2.0");
    plugin.interfaces = interfaces;
    plugin.interface_count = 1;
    plugin.get_interface = &interface_of;
    plugin.open = &open_instance;
    plugin.close = &close_instance;
    return plugin;
  }();
  return &table;
}
#else
EXPORT int some_other_symbol() { return 1; }
#endif
