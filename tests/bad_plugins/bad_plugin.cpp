#include "bad_plugin.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>
#include <cfenv>
#include <clocale>
#include <csignal>
#include <stdexcept>

// One translation unit a plugin: the parts are included.
#include "bad_devices.inc"
#include "bad_files.inc"
#include "bad_kernels.inc"
#include "bad_passes.inc"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace bad {
namespace {

// What happens while the library is loaded.
struct AtLoad {
  AtLoad() {
    if (is(throws_on_load) && std::getenv("TENON_TEST_QUIET") == nullptr)
      throw std::runtime_error("no licence found");
    if (is(crashes_on_load)) std::raise(SIGSEGV);
    if (is(exits_on_load)) _exit(7);
    while (is(hangs_on_load)) sleep(1);
  }
};
[[maybe_unused]] const AtLoad at_load;

constexpr const char* rule_text =
    R"({"schema": "tenon.rules/1", "rules": [{"rule": "Bad", "pattern": {"nodes": 5}}]})";

const void* table_of(const char* id) {
  if (std::strcmp(id, TN_OPS_ID) == 0) return ops();
  if (std::strcmp(id, TN_KERNELS_ID) == 0) return kernels();
  if (std::strcmp(id, TN_PASSES_ID) == 0) return passes();
  if (std::strcmp(id, TN_TRANSFORMS_ID) == 0) return transforms();
  if (std::strcmp(id, TN_FRONTENDS_ID) == 0) return frontends();
  if (std::strcmp(id, TN_EXPORTERS_ID) == 0) return exporters();
  if (std::strcmp(id, TN_MEMORY_ID) == 0) return planners();
  if (std::strcmp(id, TN_TENSOR_FILES_ID) == 0) return tensor_files();
  if (std::strcmp(id, TN_DEVICE_ID) == 0) return devices();
  if (is(broken_rule) && std::strcmp(id, TN_RULES_ID) == 0) {
    static const tn_rule_source source = {text("plugin bad: bad.json"), text(rule_text), 0, 0};
    static const tn_rule_list list = {sizeof(tn_rule_list), 1, &source};
    return &list;
  }
  return nullptr;
}

const void* interface_of(const char* id) {
  if (is(answers_similar_ids) && std::strncmp(id, TN_OPS_ID, sizeof TN_OPS_ID - 1) == 0) return ops();
  return table_of(id);
}

void* sleep_for_ever(void*) {
  for (;;) sleep(1000);
}

tn_status refuse(const tn_diag* diag, const char* why) {
  if (!is(refuses_silently)) tell(diag, why);
  return TN_ERR_UNSUPPORTED;
}

int live_instances = 0;
int opened_so_far = 0;

tn_status open_instance(const tn_host* host, const tn_diag* diag, void** out) {
  if (is(fails_in_open)) return refuse(diag, "no device /dev/acme0");
  if (is(crashes_in_open)) std::raise(SIGSEGV);
  if (is(opens_once) && opened_so_far++ > 0) return refuse(diag, "it was opened before");
  if (is(one_instance_only) && live_instances > 0) return refuse(diag, "it is open already");
  if (is(wants_the_host_it_knows) && host->size != sizeof(tn_host)) return refuse(diag, "another host");
  auto* const services = new Services;
  services->host = host;
  services->graph = service<tn_graph_api>(host, TN_GRAPH_ID);
  services->edit = service<tn_edit_api>(host, TN_GRAPH_EDIT_ID);
  services->files = service<tn_files_api>(host, TN_FILES_ID);
  services->eval = service<tn_eval_api>(host, TN_EVAL_ID);
  if (is(needs_every_service) && services->files->size == 0) return TN_ERR_INTERNAL;  // a NULL table is read
  if ((services->graph == nullptr || services->edit == nullptr)) {
    delete services;
    return refuse(diag, "graphs cannot be edited in this host");
  }
  if (is(wants_tables_of_one_size) && services->graph->size != sizeof(tn_graph_api)) {
    delete services;
    return refuse(diag, "another graph interface");
  }
  if (is(leaves_a_thread)) {
    pthread_t thread;
    pthread_create(&thread, nullptr, &sleep_for_ever, nullptr);
  }
  if (is(leaves_a_file)) (void)!open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (is(takes_a_signal)) std::signal(SIGINT, SIG_IGN);
  if (is(sets_rounding)) std::fesetround(FE_DOWNWARD);
  if (is(sets_the_locale)) std::setlocale(LC_ALL, "C.UTF-8");
  ++live_instances;
  *out = services;
  return TN_OK;
}

void close_instance(void* instance) {
  --live_instances;
  if (!is(leaks_its_instance)) delete &of(instance);
}

tn_plugin make_table() {
  static const char* const interfaces[] = {TN_OPS_ID,
                                           TN_KERNELS_ID,
                                           TN_PASSES_ID,
                                           TN_TRANSFORMS_ID,
                                           TN_FRONTENDS_ID,
                                           TN_EXPORTERS_ID,
                                           TN_MEMORY_ID,
                                           TN_TENSOR_FILES_ID,
                                           TN_DEVICE_ID,
                                           TN_RULES_ID,
                                           "bad.no-such-interface/1"};
  tn_plugin plugin{};
  plugin.size = is(small_table) ? 24 : sizeof plugin;
  plugin.abi_major = TN_ABI_MAJOR;
  plugin.built_host_minor = TN_ABI_MINOR;
  plugin.id = text("test.bad." PLUGIN_NAME);
  plugin.name = text(PLUGIN_NAME);
  plugin.version = text("1.0.0");
  plugin.vendor = text("tests");
  plugin.license = text("Apache-2.0");
  plugin.summary = text("right but for one fault");
  plugin.interfaces = interfaces;
  plugin.interface_count = is(lists_what_it_lacks)  ? 11
                           : is(broken_rule)        ? 10
                           : is(hides_an_interface) ? 8
                                                    : 9;
  plugin.get_interface = &interface_of;
  plugin.open = &open_instance;
  plugin.close = &close_instance;
  return plugin;
}

}  // namespace

template <class T>
struct Shared {
  static int value;
};
template <class T>
int Shared<T>::value = 0;

}  // namespace bad

#if defined(HAS_UNIQUE_SYMBOL)
template struct __attribute__((visibility("default"))) bad::Shared<int>;
#endif
#if defined(HAS_HOST_SYMBOL)
extern "C" __attribute__((weak)) int tenon_host_internals();
int (*const host_internals)() = &tenon_host_internals;
#endif
#if defined(HAS_TEXT_RELOCATION)
asm(".text\n.quad bad_text_relocation_target\n.data\nbad_text_relocation_target: .quad 0\n.text\n");
#endif

#if !defined(HAS_NO_ENTRY)
EXPORT const tn_plugin* tenon_plugin_entry(uint32_t host_major) {
  if (host_major != TN_ABI_MAJOR && !bad::is(bad::serves_every_major)) return nullptr;
  static tn_plugin table = bad::make_table();
  if (bad::is(bad::changes_its_table)) {
    static uint32_t calls = 0;
    table.reserved = ++calls;
  }
#if defined(HAS_HOST_SYMBOL)
  if (host_internals != nullptr) return nullptr;
#endif
  return &table;
}
#else
EXPORT int some_other_symbol() { return 1; }
#endif
#if defined(EXPORTS_MORE)
EXPORT int bad_helper() { return 1; }
#endif
