#include "core/plugin/plugin_table.hpp"

#include <tenon/abi/kernels.h>
#include <tenon/abi/ops.h>

#include <algorithm>
#include <boost/dll/shared_library.hpp>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

namespace tenon {

namespace {

std::string to_string(tn_str text) {
  return text.data == nullptr ? std::string() : std::string(text.data, text.size);
}

// The loader's text, sorted into what a person can act on.
Refusal load_refusal(const std::filesystem::path& library, std::string text) {
  // Boost.DLL: "boost::dll::shared_library::load() failed (dlerror system message: <text>): Bad file
  // descriptor".
  constexpr std::string_view wrapper = "dlerror system message: ";
  const size_t begin_of_text = text.find(wrapper);
  // Not the loader's: a static constructor threw, and the exception found its way through dlopen.
  if (begin_of_text == std::string::npos)
    return {"throws a C++ exception while it is loaded: " + text, std::string(ask_vendor)};
  text.erase(0, begin_of_text + wrapper.size());
  if (const size_t tail = text.rfind("): "); tail != std::string::npos) text.erase(tail);
  if (const size_t own = text.find(library.string() + ": "); own == 0)
    text.erase(0, library.string().size() + 2);

  const size_t missing = text.find(": cannot open shared object file");
  if (missing != std::string::npos) {
    const size_t begin = text.rfind(' ', missing - 1);
    const std::string name = text.substr(begin == std::string::npos ? 0 : begin + 1,
                                         missing - (begin == std::string::npos ? 0 : begin + 1));
    return {"needs the library " + name + ", which cannot be found",
            "install it, or give the plugin an rpath to it", false};
  }
  if (const size_t symbol = text.find("undefined symbol: "); symbol != std::string::npos) {
    return {"needs the symbol " + text.substr(symbol + 18) + ", which nothing provides",
            "link the library that defines it; -Wl,-z,defs finds this when the plugin is built"};
  }
  if (text.find("version `") != std::string::npos)
    return {"cannot be loaded: " + text, "build the plugin on a system as old as this one"};
  return {"cannot be loaded: " + text, "rebuild the plugin for this system"};
}

std::string refuses_major(tenon_plugin_entry_fn entry) {
  std::string served;
  for (uint32_t major = 0; major < 10; ++major) {
    if (major == TN_ABI_MAJOR || entry(major) == nullptr) continue;
    served += (served.empty() ? "" : ", ") + std::to_string(major);
  }
  return "does not serve hosts of ABI major " + std::to_string(TN_ABI_MAJOR) +
         (served.empty() ? std::string() : "; it serves major " + served);
}

std::vector<std::string> sorted(std::set<std::string> names) { return {names.begin(), names.end()}; }

template <typename List>
const List* list_of(const tn_plugin& table, const char* id) {
  return static_cast<const List*>(table.get_interface(id));
}

}  // namespace

namespace {

// Never destroyed: its destructor would unmap the library. Listed, so that a leak checker sees that it is
// kept.
boost::dll::shared_library* kept_library() {
  static std::mutex mutex;
  static auto* all = new std::vector<boost::dll::shared_library*>;
  const std::lock_guard lock(mutex);
  return all->emplace_back(new boost::dll::shared_library);
}

}  // namespace

std::variant<tenon_plugin_entry_fn, Refusal> load_library(const std::filesystem::path& library) {
  try {
    boost::dll::shared_library* opened = kept_library();
    opened->load(library, boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local);
    if (!opened->has(TN_ENTRY_SYMBOL)) {
      return Refusal{"has no symbol " TN_ENTRY_SYMBOL,
                     "export it as extern \"C\" with default visibility (TENON_PLUGIN does)"};
    }
    return &opened->get<std::remove_pointer_t<tenon_plugin_entry_fn>>(TN_ENTRY_SYMBOL);
  } catch (const std::exception& error) {
    return load_refusal(library, error.what());
  } catch (...) {
    return Refusal{"throws a C++ exception while it is loaded", std::string(ask_vendor)};
  }
}

std::variant<const tn_plugin*, Refusal> check_table(tenon_plugin_entry_fn entry) {
  const std::string rebuild = "rebuild the plugin with the SDK of this version (" +
                              std::to_string(TN_ABI_MAJOR) + "." + std::to_string(TN_ABI_MINOR) + ")";
  const tn_plugin* table = entry(TN_ABI_MAJOR);
  if (table == nullptr) return Refusal{refuses_major(entry), rebuild};
  const auto broken = [](std::string what) {
    return Refusal{std::move(what), "report it to the plugin's vendor; tenon plugins check shows all faults"};
  };
  if (table->size >= 2 * sizeof(uint32_t) && table->abi_major != TN_ABI_MAJOR) {
    return Refusal{"is built for ABI major " + std::to_string(table->abi_major) + "; this host has major " +
                       std::to_string(TN_ABI_MAJOR),
                   rebuild};
  }
  if (!TN_HAS(table, close)) {
    return broken("its table has " + std::to_string(table->size) + " bytes; at least " +
                  std::to_string(sizeof(tn_plugin)) + " are needed");
  }
  if (entry(TN_ABI_MAJOR) != table) return broken("its entry function returns another table each time");
  if (table->min_host_minor > TN_ABI_MINOR) {
    return Refusal{"needs a host of ABI " + std::to_string(TN_ABI_MAJOR) + "." +
                       std::to_string(table->min_host_minor) + "; this one is " +
                       std::to_string(TN_ABI_MAJOR) + "." + std::to_string(TN_ABI_MINOR),
                   "use a newer tenon, or an older version of the plugin"};
  }
  if (table->id.size == 0 || table->name.size == 0 || table->version.size == 0)
    return broken("its table has an empty id, name or version");
  if (table->get_interface == nullptr || table->open == nullptr || table->close == nullptr)
    return broken("its table lacks get_interface, open or close");
  if (table->interface_count > 0 && table->interfaces == nullptr)
    return broken("its list of interfaces is NULL");
  for (uint32_t i = 0; i < table->interface_count; ++i) {
    const char* id = table->interfaces[i];
    if (id == nullptr || table->get_interface(id) == nullptr)
      return broken(std::string("it lists the interface ") + (id == nullptr ? "NULL" : id) +
                    " but does not have it");
  }
  if (table->get_interface("tenon.no-such-interface/0") != nullptr)
    return broken("it answers an interface id that does not exist");
  return table;
}

PluginFacts table_facts(const tn_plugin& table) {
  PluginFacts facts;
  facts.id = to_string(table.id);
  facts.name = to_string(table.name);
  facts.version = to_string(table.version);
  facts.vendor = to_string(table.vendor);
  facts.license = to_string(table.license);
  facts.summary = to_string(table.summary);
  facts.abi_major = table.abi_major;
  facts.min_host_minor = table.min_host_minor;
  facts.built_host_minor = table.built_host_minor;
  facts.cpu_features = table.cpu_features;
  for (uint32_t i = 0; i < table.interface_count; ++i) facts.interfaces.emplace_back(table.interfaces[i]);
  std::set<std::string> operators;
  if (const auto* list = list_of<tn_op_list>(table, TN_OPS_ID); TN_HAS(list, ops) && list->ops != nullptr) {
    for (uint32_t i = 0; i < list->count; ++i) {
      if (list->ops[i] == nullptr || !TN_HAS(list->ops[i], name)) continue;
      const std::string domain = to_string(list->ops[i]->domain);
      operators.insert((domain.empty() ? "" : domain + "::") + to_string(list->ops[i]->name));
    }
  }
  std::set<std::string> kernel_operators;
  if (const auto* list = list_of<tn_kernel_list>(table, TN_KERNELS_ID);
      TN_HAS(list, kernels) && list->kernels != nullptr) {
    for (uint32_t i = 0; i < list->count; ++i) {
      if (list->kernels[i] != nullptr && TN_HAS(list->kernels[i], op))
        kernel_operators.insert(to_string(list->kernels[i]->op));
    }
  }
  facts.operators = sorted(std::move(operators));
  facts.kernel_operators = sorted(std::move(kernel_operators));
  return facts;
}

std::optional<Refusal> compare_facts(const PluginFacts& sidecar, const PluginFacts& table) {
  std::string differences;
  const auto compare = [&](const char* what, const std::string& said, const std::string& is) {
    if (said == is) return;
    differences += (differences.empty() ? "" : "; ") + std::string(what) + " '" + said +
                   "' but the library has '" + is + "'";
  };
  compare("id", sidecar.id, table.id);
  compare("name", sidecar.name, table.name);
  compare("version", sidecar.version, table.version);
  const auto abi = [](const PluginFacts& facts) {
    return std::to_string(facts.abi_major) + "." + std::to_string(facts.min_host_minor) + ".." +
           std::to_string(facts.built_host_minor);
  };
  compare("abi", abi(sidecar), abi(table));
  compare("cpu_feature_bits", std::to_string(sidecar.cpu_features), std::to_string(table.cpu_features));
  const auto joined = [](std::vector<std::string> names) {
    std::sort(names.begin(), names.end());
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    return text;
  };
  compare("interfaces", joined(sidecar.interfaces), joined(table.interfaces));
  if (differences.empty()) return std::nullopt;
  return Refusal{"its sidecar says " + differences,
                 "install the library and its .plugin.json from the same build"};
}

nlohmann::json facts_to_json(const PluginFacts& facts) {
  return {{"id", facts.id},
          {"name", facts.name},
          {"version", facts.version},
          {"vendor", facts.vendor},
          {"license", facts.license},
          {"summary", facts.summary},
          {"abi",
           {{"major", facts.abi_major},
            {"min_host_minor", facts.min_host_minor},
            {"built_host_minor", facts.built_host_minor}}},
          {"interfaces", facts.interfaces},
          {"cpu_feature_bits", facts.cpu_features},
          {"operators", facts.operators},
          {"kernel_operators", facts.kernel_operators}};
}

PluginFacts facts_from_json(const nlohmann::json& json) {
  PluginFacts facts;
  facts.id = json.at("id").get<std::string>();
  facts.name = json.at("name").get<std::string>();
  facts.version = json.at("version").get<std::string>();
  facts.vendor = json.value("vendor", "");
  facts.license = json.value("license", "");
  facts.summary = json.value("summary", "");
  const nlohmann::json& abi = json.at("abi");
  facts.abi_major = abi.at("major").get<uint32_t>();
  facts.min_host_minor = abi.at("min_host_minor").get<uint32_t>();
  facts.built_host_minor = abi.at("built_host_minor").get<uint32_t>();
  facts.interfaces = json.at("interfaces").get<std::vector<std::string>>();
  facts.cpu_features = json.value("cpu_feature_bits", uint64_t{0});
  facts.operators = json.value("operators", std::vector<std::string>());
  facts.kernel_operators = json.value("kernel_operators", std::vector<std::string>());
  return facts;
}

}  // namespace tenon
