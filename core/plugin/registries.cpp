#include "core/plugin/registries.hpp"

#include <tenon/abi/kernel_registry.h>
#include <tenon/abi/transforms.h>

#include <algorithm>

#include "core/base/text.hpp"
#include "core/graph/interner.hpp"
#include "core/plugin/decompose.hpp"
#include "core/plugin/host.hpp"

namespace tenon {

namespace {

// ai.onnx's canonical operator set, fixed for all of 1.x (ops.h); other domains have the newest of their
// definitions.
constexpr int32_t canonical_opset = 28;

// The text of a const char* or tn_str as a view that lives as long as the plugin's table, which is until
// exit.
std::string_view plugin_name(const tn_plugin& plugin) { return view(plugin.name); }

bool is_default_domain(std::string_view domain) { return domain.empty() || domain == "ai.onnx"; }

std::string qualified_name(const tn_op_def& def) {
  return is_default_domain(view(def.domain)) ? string(def.name)
                                             : string(def.domain) + "::" + string(def.name);
}

// What is wrong with a record: the reason, or empty. `record` reaches at least as far as its size says.
std::string fault_of(const tn_op_def* def) {
  if (!TN_HAS(def, decompose)) return "is smaller than version 1.0 of tn_op_def";
  if (def->name.size == 0) return "has no name";
  if (def->since_version < 1 || def->first_version > def->since_version) return "has impossible versions";
  if ((def->input_count > 0 && def->inputs == nullptr) ||
      (def->output_count > 0 && def->outputs == nullptr) ||
      (def->type_var_count > 0 && def->type_vars == nullptr) ||
      (def->attr_count > 0 && def->attrs == nullptr) || (def->alias_count > 0 && def->aliases == nullptr)) {
    return "has a count above 0 and a NULL array";
  }
  return {};
}

std::string fault_of(const tn_kernel_record* record) {
  if (!TN_HAS(record, plan)) return "is smaller than version 1.0 of tn_kernel_record";
  if (record->id.size == 0 || record->op.size == 0) return "has no id or no operator";
  if (record->plan == nullptr) return "has no plan function";
  if ((record->input_rule_count > 0 && record->input_rules == nullptr) ||
      (record->output_rule_count > 0 && record->output_rules == nullptr) ||
      (record->alias_count > 0 && record->aliases == nullptr)) {
    return "has a count above 0 and a NULL array";
  }
  return {};
}

std::string fault_of(const tn_pass_record* record) {
  if (!TN_HAS(record, alias_count)) return "is smaller than version 1.0 of tn_pass_record";
  if (record->id.size == 0) return "has no id";
  if (record->run == nullptr) return "has no run function";
  if ((record->option_count > 0 && record->options == nullptr) ||
      (record->after_count > 0 && record->after == nullptr) ||
      (record->before_count > 0 && record->before == nullptr) ||
      (record->alias_count > 0 && record->aliases == nullptr)) {
    return "has a count above 0 and a NULL array";
  }
  return {};
}

std::string fault_of(const tn_frontend_record* record) {
  if (!TN_HAS(record, load)) return "is smaller than version 1.0 of tn_frontend_record";
  if (record->id.size == 0) return "has no id";
  return record->probe == nullptr || record->load == nullptr ? "lacks probe or load" : "";
}

std::string fault_of(const tn_exporter_record* record) {
  if (!TN_HAS(record, write)) return "is smaller than version 1.0 of tn_exporter_record";
  if (record->id.size == 0) return "has no id";
  return record->write == nullptr ? "has no write function" : "";
}

std::string fault_of(const tn_planner_record* record) {
  if (!TN_HAS(record, plan)) return "is smaller than version 1.0 of tn_planner_record";
  if (record->id.size == 0) return "has no id";
  return record->plan == nullptr ? "has no plan function" : "";
}

std::string fault_of(const tn_device_record* r) {
  if (!TN_HAS(r, explain)) return "is smaller than version 1.0 of tn_device_record";
  if (r->kind.size == 0) return "has no kind";
  if (view(r->kind) == "cpu" || view(r->kind).find(':') != std::string_view::npos)
    return "has a kind that is taken or has a colon";
  const bool complete = r->count && r->open && r->close && r->properties && r->allocate && r->release &&
                        r->map && r->create_stream && r->destroy_stream && r->create_event &&
                        r->destroy_event && r->upload && r->download && r->copy && r->record && r->wait &&
                        r->synchronize && r->finish && r->explain;
  return complete ? "" : "lacks one of its functions";
}

std::string fault_of(const tn_tensor_file_record* record) {
  if (!TN_HAS(record, write)) return "is smaller than version 1.0 of tn_tensor_file_record";
  if (record->id.size == 0) return "has no id";
  return record->read == nullptr && record->write == nullptr ? "can neither read nor write" : "";
}

std::string fault_of(const tn_transform* record) {
  if (!TN_HAS(record, apply)) return "is smaller than version 1.0 of tn_transform";
  return record->name.size == 0 || record->apply == nullptr ? "has no name or no function" : "";
}

std::string id_of(const tn_op_def& def) { return qualified_name(def); }
std::string id_of(const tn_transform& record) { return string(record.name); }
std::string id_of(const tn_device_record& record) { return string(record.kind); }
template <typename Record>
std::string id_of(const Record& record) {
  return string(record.id);
}

// The list behind an interface, when its table reaches as far as `array`.
template <typename List, typename Array>
std::pair<Array, uint32_t> list_of(const tn_plugin& plugin, const char* id, Array List::*array) {
  const auto* list = static_cast<const List*>(plugin.get_interface(id));
  if (list == nullptr) return {nullptr, 0};
  const size_t needed = static_cast<size_t>(reinterpret_cast<const char*>(&(list->*array)) -
                                            reinterpret_cast<const char*>(list)) +
                        sizeof(Array);
  if (list->size < needed || list->*array == nullptr) return {nullptr, 0};
  return {list->*array, list->count};
}

template <typename Entry>
const Entry* by_id(const std::vector<Entry>& entries, std::string_view id) {
  for (const Entry& entry : entries) {
    if (view(entry.record->id) == id) return &entry;
  }
  return nullptr;
}

template <typename Entry>
const Entry* by_suffix(const std::vector<Entry>& entries, std::string_view path) {
  const std::string lower_path = lower(path);
  const Entry* best = nullptr;
  size_t best_size = 0;
  for (const Entry& entry : entries) {
    for (uint32_t i = 0; i < entry.record->suffix_count; ++i) {
      const std::string suffix = lower(view(entry.record->suffixes[i]));
      if (suffix.size() > best_size && lower_path.ends_with(suffix)) {
        best = &entry;
        best_size = suffix.size();
      }
    }
  }
  return best;
}

}  // namespace

Registries::Registries() = default;
Registries::~Registries() = default;

template <typename Record, typename Add>
void Registries::add_list(const tn_plugin& plugin, const char* interface_id, const Record* const* records,
                          uint32_t count, Diagnostics& diagnostics, Add add) {
  const std::string place = "plugin " + string(plugin.name);
  for (uint32_t i = 0; i < count; ++i) {
    const std::string what = "record " + std::to_string(i) + " of " + interface_id;
    if (records[i] == nullptr) {
      diagnostics.add(TN_SEVERITY_PLUGIN_MISBEHAVING, "M320", place, what + " is NULL; it is left out");
      continue;
    }
    const std::string fault = fault_of(records[i]);
    if (!fault.empty()) {
      const bool has_id = !fault.starts_with("is smaller") && !id_of(*records[i]).empty();
      diagnostics.add(
          TN_SEVERITY_PLUGIN_MISBEHAVING, "M320", place,
          what + (has_id ? " ('" + id_of(*records[i]) + "')" : "") + " " + fault + "; it is left out");
      continue;
    }
    add(*records[i]);
  }
}

void Registries::add_op(const tn_op_def& def, void* instance, const std::string& plugin,
                        Diagnostics& diagnostics) {
  const std::string name = qualified_name(def);
  const tn_sym symbol = intern(name);
  const auto [place, is_new] = ops_.try_emplace(symbol, OpEntry{&def, instance});
  if (!is_new) {
    diagnostics.warning("M321", "plugin " + plugin,
                        "defines operator " + name + ", which plugin " + op_plugins_[symbol] +
                            " has defined already; the first definition is used");
    return;
  }
  op_plugins_.emplace(symbol, plugin);
  op_symbols_.push_back(symbol);
  const std::string domain = is_default_domain(view(def.domain)) ? std::string() : string(def.domain);
  int32_t& version = domain_versions_.try_emplace(domain, domain.empty() ? canonical_opset : 0).first->second;
  version = std::max(version, def.since_version);
  const auto name_it = [&](const std::string& text) {
    std::vector<tn_sym>& meant = op_names_[text];
    if (std::find(meant.begin(), meant.end(), symbol) == meant.end()) meant.push_back(symbol);
  };
  name_it(string(def.name));
  for (uint32_t i = 0; i < def.alias_count; ++i) name_it(string(def.aliases[i]));
}

void Registries::add_plugin(const tn_plugin& plugin, void* instance, Diagnostics& diagnostics) {
  const std::string_view name = plugin_name(plugin);
  const std::string name_text(name);
  {
    const auto [records, count] = list_of(plugin, TN_OPS_ID, &tn_op_list::ops);
    add_list(plugin, TN_OPS_ID, records, count, diagnostics,
             [&](const tn_op_def& def) { add_op(def, instance, name_text, diagnostics); });
  }
  {
    const auto [records, count] = list_of(plugin, TN_KERNELS_ID, &tn_kernel_list::kernels);
    add_list(plugin, TN_KERNELS_ID, records, count, diagnostics, [&](const tn_kernel_record& record) {
      const tn_sym op =
          intern(view(record.op).starts_with("ai.onnx::") ? view(record.op).substr(9) : view(record.op));
      std::vector<KernelEntry>& entries = kernels_[op];
      if (entries.empty()) kernel_ops_.push_back(op);
      entries.push_back({&record, instance, op, name});
    });
  }
  const auto add_unique = [&](auto& entries, const auto& record, const char* kind) {
    if (const auto* other = by_id(entries, view(record.id))) {
      diagnostics.warning("M321", "plugin " + name_text,
                          std::string("has the ") + kind + " '" + string(record.id) + "', which plugin " +
                              std::string(other->plugin) + " has already; the first one is used");
      return;
    }
    entries.push_back({&record, instance, name});
  };
  {
    const auto [records, count] = list_of(plugin, TN_PASSES_ID, &tn_pass_list::passes);
    add_list(plugin, TN_PASSES_ID, records, count, diagnostics,
             [&](const tn_pass_record& record) { add_unique(passes_, record, "pass"); });
  }
  {
    const auto [records, count] = list_of(plugin, TN_FRONTENDS_ID, &tn_frontend_list::frontends);
    add_list(plugin, TN_FRONTENDS_ID, records, count, diagnostics,
             [&](const tn_frontend_record& record) { add_unique(frontends_, record, "frontend"); });
  }
  {
    const auto [records, count] = list_of(plugin, TN_EXPORTERS_ID, &tn_exporter_list::exporters);
    add_list(plugin, TN_EXPORTERS_ID, records, count, diagnostics,
             [&](const tn_exporter_record& record) { add_unique(exporters_, record, "exporter"); });
  }
  {
    const auto [records, count] = list_of(plugin, TN_MEMORY_ID, &tn_planner_list::planners);
    add_list(plugin, TN_MEMORY_ID, records, count, diagnostics,
             [&](const tn_planner_record& record) { add_unique(planners_, record, "memory planner"); });
  }
  {
    const auto [records, count] = list_of(plugin, TN_DEVICE_ID, &tn_device_list::devices);
    add_list(plugin, TN_DEVICE_ID, records, count, diagnostics, [&](const tn_device_record& record) {
      for (const DeviceEntry& other : devices_) {
        if (view(other.record->kind) != view(record.kind)) continue;
        diagnostics.warning("M321", "plugin " + name_text,
                            "has the device '" + string(record.kind) + "', which plugin " +
                                std::string(other.plugin) + " has already; the first one is used");
        return;
      }
      devices_.push_back({&record, instance, name});
    });
  }
  {
    const auto [records, count] = list_of(plugin, TN_TENSOR_FILES_ID, &tn_tensor_file_list::formats);
    add_list(plugin, TN_TENSOR_FILES_ID, records, count, diagnostics,
             [&](const tn_tensor_file_record& record) {
               add_unique(tensor_files_, record, "tensor file format");
             });
  }
  {
    const auto [records, count] = list_of(plugin, TN_TRANSFORMS_ID, &tn_transform_list::transforms);
    add_list(plugin, TN_TRANSFORMS_ID, records, count, diagnostics, [&](const tn_transform& record) {
      transforms_.push_back({&record, instance, name});
    });
  }
  if (const auto [sources, count] = list_of(plugin, TN_RULES_ID, &tn_rule_list::sources);
      sources != nullptr) {
    for (uint32_t i = 0; i < count; ++i) rule_sources_.push_back(sources[i]);
  }
  if (const auto* engine = static_cast<const tn_rule_engine_api*>(plugin.get_interface(TN_RULE_ENGINE_ID))) {
    if (!TN_HAS(engine, test) || engine->check == nullptr || engine->test == nullptr) {
      diagnostics.add(TN_SEVERITY_PLUGIN_MISBEHAVING, "M320", "plugin " + name_text,
                      "its rule engine lacks check or test; it is left out");
    } else if (!rule_engines_.empty()) {
      diagnostics.warning("M321", "plugin " + name_text,
                          "brings a second rule engine; that of plugin " +
                              std::string(rule_engines_.front().plugin) + " is used");
    } else {
      rule_engines_.push_back({engine, instance, name});
    }
  }
}

const OpEntry* Registries::find(tn_sym op) const {
  const auto found = ops_.find(op);
  return found == ops_.end() ? nullptr : &found->second;
}

int32_t Registries::domain_version(std::string_view domain) const {
  const auto found = domain_versions_.find(is_default_domain(domain) ? std::string() : std::string(domain));
  return found == domain_versions_.end() ? 0 : found->second;
}

std::vector<tn_sym> Registries::resolve(std::string_view name) const {
  size_t separator = name.rfind("::");
  size_t separator_size = 2;
  if (separator == std::string_view::npos) {
    separator = name.rfind('.');
    separator_size = 1;
  }
  if (separator != std::string_view::npos) {
    const std::string_view domain = name.substr(0, separator);
    const std::string_view plain = name.substr(separator + separator_size);
    const tn_sym symbol = intern(is_default_domain(domain) ? std::string(plain)
                                                           : std::string(domain) + "::" + std::string(plain));
    if (ops_.contains(symbol)) return {symbol};
  }
  // ONNX's own operators go by their plain names; other domains have some of the same name.
  if (const tn_sym plain = intern(std::string(name)); ops_.contains(plain)) return {plain};
  const auto found = op_names_.find(std::string(name));
  return found == op_names_.end() ? std::vector<tn_sym>() : found->second;
}

std::span<const KernelEntry> Registries::kernels(tn_sym op) const {
  const auto found = kernels_.find(op);
  return found == kernels_.end() ? std::span<const KernelEntry>()
                                 : std::span<const KernelEntry>(found->second);
}

const PassEntry* Registries::pass(std::string_view id) const { return by_id(passes_, id); }
const FrontendEntry* Registries::frontend(std::string_view id) const { return by_id(frontends_, id); }
const ExporterEntry* Registries::exporter(std::string_view id) const { return by_id(exporters_, id); }
const TensorFileEntry* Registries::tensor_file_for(std::string_view path) const {
  return by_suffix(tensor_files_, path);
}
const ExporterEntry* Registries::exporter_for(std::string_view path) const {
  return by_suffix(exporters_, path);
}

void Registries::provide(Host& host) {
  static constexpr auto self = [](const tn_host* of) -> const Registries& {
    return *static_cast<const Registries*>(Host::from(of).context(TN_REGISTRY_ID));
  };
  static const tn_registry_api api = {
      sizeof(tn_registry_api),
      0,
      [](const tn_host* of, tn_sym op) -> const tn_op_def* {
        const OpEntry* entry = self(of).find(op);
        return entry == nullptr ? nullptr : entry->def;
      },
      [](const tn_host* of, tn_str name, tn_sym* op) -> tn_status {
        const std::vector<tn_sym> meant = self(of).resolve(view(name));
        if (meant.empty()) return TN_ERR_NOT_FOUND;
        if (meant.size() > 1) return TN_ERR_INVALID;
        *op = meant.front();
        return TN_OK;
      },
      [](const tn_host* of) { return static_cast<uint32_t>(self(of).op_symbols_.size()); },
      [](const tn_host* of, uint32_t i) -> const tn_op_def* {
        const Registries& registries = self(of);
        return i < registries.op_symbols_.size() ? registries.find(registries.op_symbols_[i])->def : nullptr;
      },
      [](const tn_host* of, tn_sym op) -> int { return self(of).kernels(op).empty() ? 0 : 1; },
      [](const tn_host* of, tn_str domain) -> int32_t { return self(of).domain_version(view(domain)); }};
  host.provide(TN_REGISTRY_ID, &api, this);
  static const tn_decompose_api decomposing = {
      sizeof(tn_decompose_api), 0,
      [](const tn_host* of, tn_graph* graph, tn_edit* edit, tn_node node, const tn_diag* diag) -> tn_status {
        return decompose(self(of), *static_cast<Graph*>(graph), edit, node, diag);
      }};
  host.provide(TN_DECOMPOSE_ID, &decomposing, this);
  static const tn_transform_registry_api transform_list = {
      sizeof(tn_transform_registry_api), 0,
      [](const tn_host* of) {
        return static_cast<uint32_t>(
            static_cast<const Registries*>(Host::from(of).context(TN_TRANSFORM_REGISTRY_ID))
                ->transforms()
                .size());
      },
      [](const tn_host* of, uint32_t i, void** instance) -> const tn_transform* {
        const auto& all =
            static_cast<const Registries*>(Host::from(of).context(TN_TRANSFORM_REGISTRY_ID))->transforms();
        if (i >= all.size()) return nullptr;
        *instance = all[i].instance;
        return all[i].record;
      }};
  host.provide(TN_TRANSFORM_REGISTRY_ID, &transform_list, this);
  static const tn_kernel_registry_api kernel_list = {
      sizeof(tn_kernel_registry_api), 0, [](const tn_host* of, tn_sym op, tn_str device) -> int {
        const auto* all = static_cast<const Registries*>(Host::from(of).context(TN_KERNEL_REGISTRY_ID));
        for (const KernelEntry& kernel : all->kernels(op))
          if (view(kernel.record->device) == view(device)) return 1;
        return 0;
      }};
  host.provide(TN_KERNEL_REGISTRY_ID, &kernel_list, this);
}

}  // namespace tenon
