// What the loaded plugins bring, by kind. Everything here points into plugin tables, which live until exit.
#pragma once
#include <tenon/abi/device.h>
#include <tenon/abi/exporter.h>
#include <tenon/abi/frontend.h>
#include <tenon/abi/kernels.h>
#include <tenon/abi/memory.h>
#include <tenon/abi/ops.h>
#include <tenon/abi/pass.h>
#include <tenon/abi/rule_engine.h>
#include <tenon/abi/rules.h>
#include <tenon/abi/tensor_file.h>
#include <tenon/abi/transforms.h>

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/diagnostics.hpp"
#include "core/graph/op_registry.hpp"

namespace tenon {

class Host;

// `plugin` is the plugin's short name; `instance` the handle its functions take.
struct KernelEntry {
  const tn_kernel_record* record;
  void* instance;
  tn_sym op;
  std::string_view plugin;
};
template <typename Record>
struct RecordEntry {
  const Record* record;
  void* instance;
  std::string_view plugin;
};
using PassEntry = RecordEntry<tn_pass_record>;
using FrontendEntry = RecordEntry<tn_frontend_record>;
using ExporterEntry = RecordEntry<tn_exporter_record>;
using PlannerEntry = RecordEntry<tn_planner_record>;
using DeviceEntry = RecordEntry<tn_device_record>;
using TensorFileEntry = RecordEntry<tn_tensor_file_record>;
using TransformEntry = RecordEntry<tn_transform>;
using RuleEngineEntry = RecordEntry<tn_rule_engine_api>;

class Registries : public OpRegistry {
 public:
  Registries();
  ~Registries() override;
  Registries(const Registries&) = delete;
  Registries& operator=(const Registries&) = delete;

  // Adds all the interfaces of an open plugin. Malformed records (a missing function, a size too small) are
  // left out, each with a warning; nothing of another plugin changes. Also good for a table inside this
  // program. [main]
  void add_plugin(const tn_plugin& plugin, void* instance, Diagnostics& diagnostics);

  const OpEntry* find(tn_sym op) const override;
  int32_t domain_version(std::string_view domain) const override;
  // "Conv", "tenon::SDPA", "tenon.SDPA" or an alias; matches are all operators meant.
  std::vector<tn_sym> resolve(std::string_view name) const;
  const std::vector<tn_sym>& op_symbols() const { return op_symbols_; }  // in the order they were loaded

  std::span<const KernelEntry> kernels(tn_sym op) const;  // in the order they were loaded
  const std::vector<tn_sym>& kernel_ops() const { return kernel_ops_; }
  const std::vector<PassEntry>& passes() const { return passes_; }
  const std::vector<FrontendEntry>& frontends() const { return frontends_; }
  const std::vector<ExporterEntry>& exporters() const { return exporters_; }
  const std::vector<PlannerEntry>& planners() const { return planners_; }
  const std::vector<DeviceEntry>& devices() const { return devices_; }
  const std::vector<TensorFileEntry>& tensor_files() const { return tensor_files_; }
  const std::vector<TransformEntry>& transforms() const { return transforms_; }
  const std::vector<tn_rule_source>& rule_sources() const { return rule_sources_; }  // carried by plugins
  const RuleEngineEntry* rule_engine() const {
    return rule_engines_.empty() ? nullptr : &rule_engines_.front();
  }

  const PassEntry* pass(std::string_view id) const;  // by id only
  const FrontendEntry* frontend(std::string_view id) const;
  const ExporterEntry* exporter(std::string_view id) const;
  // By the longest suffix of the file's name that matches, letters' case not counted.
  const TensorFileEntry* tensor_file_for(std::string_view path) const;
  const ExporterEntry* exporter_for(std::string_view path) const;

  // tenon.registry/1, answered from here.
  void provide(Host& host);

 private:
  void add_op(const tn_op_def& def, void* instance, const std::string& plugin, Diagnostics& diagnostics);
  template <typename Record, typename Add>
  void add_list(const tn_plugin& plugin, const char* interface_id, const Record* const* records,
                uint32_t count, Diagnostics& diagnostics, Add add);

  std::unordered_map<tn_sym, OpEntry> ops_;
  std::unordered_map<tn_sym, std::string> op_plugins_;
  std::vector<tn_sym> op_symbols_;
  std::unordered_map<std::string, std::vector<tn_sym>> op_names_;  // unqualified names and aliases
  std::unordered_map<std::string, int32_t> domain_versions_;
  std::unordered_map<tn_sym, std::vector<KernelEntry>> kernels_;
  std::vector<tn_sym> kernel_ops_;
  std::vector<PassEntry> passes_;
  std::vector<FrontendEntry> frontends_;
  std::vector<ExporterEntry> exporters_;
  std::vector<PlannerEntry> planners_;
  std::vector<DeviceEntry> devices_;
  std::vector<TensorFileEntry> tensor_files_;
  std::vector<TransformEntry> transforms_;
  std::vector<RuleEngineEntry> rule_engines_;
  std::vector<tn_rule_source> rule_sources_;
};

}  // namespace tenon
