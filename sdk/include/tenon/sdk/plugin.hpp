// The plugin itself: one builder function says what it provides.
//
//   #include "tenon/sdk/plugin.hpp"
//   static void provide(tenon::sdk::Plugin& p) {
//     p.id("com.acme").name("acme").version("1.0.0").summary("...");
//     p.kernel("com.acme.relu/1", "Relu").input({TN_FLOAT32}).plan<plan_relu>();
//   }
//   TENON_PLUGIN(provide)
#pragma once
#include "kernels.hpp"
#include "ops.hpp"
#include "pass.hpp"
#include "tenon/abi/exporter.h"
#include "tenon/abi/frontend.h"
#include "tenon/abi/memory.h"
#include "tenon/abi/rules.h"
#include "tenon/abi/tensor_file.h"
#include "tenon/abi/transforms.h"

namespace tenon::sdk {

/// What every instance of a plugin holds: the host and its services. Services that the host lacks are NULL.
struct Services {
  const tn_host* host = nullptr;
  const tn_graph_api* graph = nullptr;
  const tn_edit_api* edit = nullptr;
  const tn_symbols_api* symbols = nullptr;
  const tn_registry_api* registry = nullptr;
  const tn_files_api* files = nullptr;
  explicit Services(const tn_host* h);
  template <class T>
  const T* get(const char* id) const {
    return static_cast<const T*>(host->get_interface(host, id));
  }
};

class Plugin {
 public:
  Plugin() {
    p_.size = sizeof p_;
    p_.abi_major = TN_ABI_MAJOR;
    p_.min_host_minor = 0;
    p_.built_host_minor = TN_ABI_MINOR;
    p_.license = str("Apache-2.0");
  }
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;
  // Texts must be literals or outlive the plugin.
  Plugin& id(const char* s) {
    p_.id = str(s);
    return *this;
  }
  Plugin& name(const char* s) {
    p_.name = str(s);
    return *this;
  }
  Plugin& version(const char* s) {
    p_.version = str(s);
    return *this;
  }
  Plugin& vendor(const char* s) {
    p_.vendor = str(s);
    return *this;
  }
  Plugin& license(const char* s) {
    p_.license = str(s);
    return *this;
  }
  Plugin& summary(const char* s) {
    p_.summary = str(s);
    return *this;
  }
  Plugin& needs_host_minor(uint32_t minor) {
    p_.min_host_minor = minor;
    return *this;
  }
  Plugin& needs_cpu(uint64_t features) {
    p_.cpu_features = features;
    return *this;
  }

  /// since_version: the newest version of the operator, given here; first_version: the one it appeared in.
  OpBuilder& op(const char* domain, const char* name, int32_t first_version, int32_t since_version) {
    return ops_.emplace_back(domain, name, first_version, since_version);
  }
  KernelBuilder& kernel(std::string id, std::string op) {
    return kernels_.emplace_back(std::move(id), std::move(op));
  }
  PassBuilder& pass(const char* id) { return passes_.emplace_back(id); }
  Plugin& frontend(const tn_frontend_record* r) {
    frontends_.push_back(r);
    return *this;
  }
  Plugin& exporter(const tn_exporter_record* r) {
    exporters_.push_back(r);
    return *this;
  }
  Plugin& planner(const tn_planner_record* r) {
    planners_.push_back(r);
    return *this;
  }
  Plugin& device(const tn_device_record* r) {
    devices_.push_back(r);
    return *this;
  }
  Plugin& tensor_file(const tn_tensor_file_record* r) {
    formats_.push_back(r);
    return *this;
  }
  Plugin& transform(const tn_transform* t) {
    transforms_.push_back(t);
    return *this;
  }
  /// A rule file carried by the plugin: `name` for messages, `json` its text.
  Plugin& rules(const char* name, const char* json) {
    rules_.push_back({str(name), str(json), 0, 0});
    return *this;
  }
  /// Any other interface table, found by its id.
  Plugin& provide(const char* interface_id, const void* table) {
    tables_.push_back({interface_id, table});
    return *this;
  }
  /// Replaces the instance (default: a Services). make may throw Failure.
  template <class T>
  Plugin& instance() {
    p_.open = [](const tn_host* host, const tn_diag* diag, void** out) noexcept -> tn_status {
      return guarded(diag, [&] { *out = new T(host); });
    };
    p_.close = [](void* i) noexcept { delete static_cast<T*>(i); };
    return *this;
  }

  const tn_plugin* finish(const void* (*lookup)(const char*)) {
    if (!p_.open) instance<Services>();
    list(ops_, op_defs_, op_list_, TN_OPS_ID, &tn_op_list::ops);
    list(kernels_, kernel_records_, kernel_list_, TN_KERNELS_ID, &tn_kernel_list::kernels);
    list(passes_, pass_records_, pass_list_, TN_PASSES_ID, &tn_pass_list::passes);
    plain(frontends_, frontend_list_, TN_FRONTENDS_ID, &tn_frontend_list::frontends);
    plain(exporters_, exporter_list_, TN_EXPORTERS_ID, &tn_exporter_list::exporters);
    plain(planners_, planner_list_, TN_MEMORY_ID, &tn_planner_list::planners);
    plain(devices_, device_list_, TN_DEVICE_ID, &tn_device_list::devices);
    plain(formats_, format_list_, TN_TENSOR_FILES_ID, &tn_tensor_file_list::formats);
    plain(transforms_, transform_list_, TN_TRANSFORMS_ID, &tn_transform_list::transforms);
    if (!rules_.empty()) {
      rule_list_ = {sizeof(tn_rule_list), static_cast<uint32_t>(rules_.size()), rules_.data()};
      tables_.push_back({TN_RULES_ID, &rule_list_});
    }
    for (const auto& t : tables_) ids_.push_back(t.id);
    p_.interfaces = ids_.data();
    p_.interface_count = static_cast<uint32_t>(ids_.size());
    p_.get_interface = lookup;
    return &p_;
  }
  const void* find(const char* id) const noexcept {
    for (const auto& t : tables_)
      if (std::string_view(t.id) == id) return t.table;
    return nullptr;
  }

 private:
  struct Table {
    const char* id;
    const void* table;
  };
  template <class B, class R, class L, class M>
  void list(std::deque<B>& builders, std::vector<R>& records, L& table, const char* id, M member) {
    if (builders.empty()) return;
    for (auto& b : builders) records.push_back(b.finish());
    plain(records, table, id, member);
  }
  template <class R, class L, class M>
  void plain(std::vector<R>& records, L& table, const char* id, M member) {
    if (records.empty()) return;
    table.size = sizeof table;
    table.count = static_cast<uint32_t>(records.size());
    table.*member = records.data();
    tables_.push_back({id, &table});
  }
  tn_plugin p_{};
  std::deque<OpBuilder> ops_;
  std::deque<KernelBuilder> kernels_;
  std::deque<PassBuilder> passes_;
  std::vector<const tn_op_def*> op_defs_;
  std::vector<const tn_kernel_record*> kernel_records_;
  std::vector<const tn_pass_record*> pass_records_;
  std::vector<const tn_frontend_record*> frontends_;
  std::vector<const tn_exporter_record*> exporters_;
  std::vector<const tn_planner_record*> planners_;
  std::vector<const tn_device_record*> devices_;
  std::vector<const tn_tensor_file_record*> formats_;
  std::vector<const tn_transform*> transforms_;
  std::vector<tn_rule_source> rules_;
  tn_op_list op_list_{};
  tn_kernel_list kernel_list_{};
  tn_pass_list pass_list_{};
  tn_frontend_list frontend_list_{};
  tn_exporter_list exporter_list_{};
  tn_planner_list planner_list_{};
  tn_device_list device_list_{};
  tn_tensor_file_list format_list_{};
  tn_transform_list transform_list_{};
  tn_rule_list rule_list_{};
  std::vector<Table> tables_;
  std::vector<const char*> ids_;
};

inline Services::Services(const tn_host* h) : host(h) {
  graph = get<tn_graph_api>(TN_GRAPH_ID);
  edit = get<tn_edit_api>(TN_GRAPH_EDIT_ID);
  symbols = get<tn_symbols_api>(TN_SYMBOLS_ID);
  registry = get<tn_registry_api>(TN_REGISTRY_ID);
  files = get<tn_files_api>(TN_FILES_ID);
}

}  // namespace tenon::sdk

/// Defines the entry. The table is made at the first call, not by a static initialiser.
#define TENON_PLUGIN(provide)                                                                      \
  extern "C" __attribute__((visibility("default"))) const tn_plugin* tenon_plugin_entry(           \
      uint32_t host_major) {                                                                       \
    if (host_major != TN_ABI_MAJOR) return nullptr;                                                \
    struct Held {                                                                                  \
      tenon::sdk::Plugin plugin;                                                                   \
      const tn_plugin* table = nullptr;                                                            \
    };                                                                                             \
    static Held* held = nullptr;                                                                   \
    static const tn_plugin* table = []() noexcept -> const tn_plugin* {                            \
      try {                                                                                        \
        held = new Held;                                                                           \
        provide(held->plugin);                                                                     \
        return held->plugin.finish([](const char* id) noexcept { return held->plugin.find(id); }); \
      } catch (...) {                                                                              \
        return nullptr;                                                                            \
      }                                                                                            \
    }();                                                                                           \
    return table;                                                                                  \
  }
