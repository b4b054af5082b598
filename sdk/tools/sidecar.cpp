// tenon-sidecar [--expect-id ID] [--expect-version V] lib<name>.so
//
// Opens a plugin just built and writes lib<name>.plugin.json beside it: what a host wants to know without
// opening the library. tenon_add_plugin runs it after each link. The file is written under another name and
// renamed, so no reader sees half of it.
//
//   {"schema": "tenon.plugin/1", "id", "version", "name", "vendor", "license", "summary", "library":
//   "lib<name>.so",
//    "abi": {"major", "min_host_minor", "built_host_minor"}, "interfaces": [id...],
//    "cpu_features": [name...], "cpu_feature_bits": tn_plugin.cpu_features,
//    "operators": ["domain::name" that it defines...], "kernel_operators": [operators that it has kernels
//    for...]}
//
// Exit codes: 0 written, 1 the plugin breaks a rule of the boundary, 2 usage.
#include <dlfcn.h>
#include <tenon/abi/core.h>
#include <tenon/abi/kernels.h>
#include <tenon/abi/ops.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace {

int fail(const std::string& library, const std::string& text) {
  std::fprintf(stderr, "tenon-sidecar: %s: %s\n", library.c_str(), text.c_str());
  return 1;
}

std::string to_string(tn_str text) {
  return text.data == nullptr ? std::string() : std::string(text.data, text.size);
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(byte));
      out += escape;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

template <typename Strings>
std::string quoted_list(const Strings& strings) {
  std::string out = "[";
  for (const std::string& text : strings) out += (out.size() > 1 ? ", " : "") + quoted(text);
  return out + "]";
}

std::vector<std::string> feature_names(uint64_t bits) {
  static const std::pair<uint64_t, const char*> known[] = {{TN_CPU_SSE42, "sse4.2"},
                                                           {TN_CPU_AVX2, "avx2"},
                                                           {TN_CPU_FMA, "fma"},
                                                           {TN_CPU_F16C, "f16c"},
                                                           {TN_CPU_AVX512, "avx512"},
                                                           {TN_CPU_AVX512_VNNI, "avx512_vnni"},
                                                           {TN_CPU_AVX512_BF16, "avx512_bf16"},
                                                           {TN_CPU_AVX512_FP16, "avx512_fp16"},
                                                           {TN_CPU_AMX_INT8, "amx_int8"},
                                                           {TN_CPU_AMX_BF16, "amx_bf16"},
                                                           {TN_CPU_AVX_VNNI, "avx_vnni"},
                                                           {TN_CPU_NEON, "neon"},
                                                           {TN_CPU_SVE, "sve"}};
  std::vector<std::string> names;
  for (const auto& [bit, name] : known) {
    if ((bits & bit) != 0) names.emplace_back(name);
    bits &= ~bit;
  }
  for (int i = 0; i < 64; ++i) {
    if ((bits >> i & 1) != 0) names.push_back("bit" + std::to_string(i));
  }
  return names;
}

std::set<std::string> defined_operators(const tn_plugin& plugin) {
  std::set<std::string> names;
  const auto* list = static_cast<const tn_op_list*>(plugin.get_interface(TN_OPS_ID));
  if (!TN_HAS(list, ops)) return names;
  for (uint32_t i = 0; i < list->count; ++i) {
    const std::string domain = to_string(list->ops[i]->domain);
    names.insert((domain.empty() ? "" : domain + "::") + to_string(list->ops[i]->name));
  }
  return names;
}

std::set<std::string> kernel_operators(const tn_plugin& plugin) {
  std::set<std::string> names;
  const auto* list = static_cast<const tn_kernel_list*>(plugin.get_interface(TN_KERNELS_ID));
  if (!TN_HAS(list, kernels)) return names;
  for (uint32_t i = 0; i < list->count; ++i) names.insert(to_string(list->kernels[i]->op));
  return names;
}

// Empty when the table keeps the rules of the boundary that a look at it can tell.
std::string table_fault(const tn_plugin* plugin, tenon_plugin_entry_fn entry) {
  if (plugin == nullptr) {
    return "tenon_plugin_entry(" + std::to_string(TN_ABI_MAJOR) +
           ") returned NULL; expected a table for this major";
  }
  if (!TN_HAS(plugin, close)) {
    return "tn_plugin.size is " + std::to_string(plugin->size) + "; expected at least " +
           std::to_string(sizeof(tn_plugin));
  }
  if (entry(TN_ABI_MAJOR) != plugin)
    return "tenon_plugin_entry returned another table when called again; it must be pure";
  if (plugin->abi_major != TN_ABI_MAJOR) {
    return "the table says ABI major " + std::to_string(plugin->abi_major) + "; expected " +
           std::to_string(TN_ABI_MAJOR);
  }
  if (plugin->min_host_minor > plugin->built_host_minor) {
    return "min_host_minor " + std::to_string(plugin->min_host_minor) + " is above built_host_minor " +
           std::to_string(plugin->built_host_minor);
  }
  if (plugin->id.size == 0 || plugin->name.size == 0 || plugin->version.size == 0) {
    return "id, name or version is empty; all three must be given";
  }
  if (plugin->get_interface == nullptr || plugin->open == nullptr || plugin->close == nullptr) {
    return "get_interface, open or close is NULL; all three must be given";
  }
  for (uint32_t i = 0; i < plugin->interface_count; ++i) {
    if (plugin->get_interface(plugin->interfaces[i]) == nullptr) {
      return std::string("lists the interface '") + plugin->interfaces[i] +
             "' but get_interface returns NULL for it";
    }
  }
  if (plugin->get_interface("tenon.no-such-interface/0") != nullptr) {
    return "get_interface answers an id that does not exist; it must return NULL for unknown ids";
  }
  return {};
}

std::string sidecar_text(const tn_plugin& plugin, const std::string& library_name) {
  std::vector<std::string> interfaces;
  for (uint32_t i = 0; i < plugin.interface_count; ++i) interfaces.emplace_back(plugin.interfaces[i]);
  std::string out = "{\n";
  const auto field = [&out](const char* key, const std::string& value, bool last = false) {
    out += "  " + quoted(key) + ": " + value + (last ? "\n" : ",\n");
  };
  field("schema", quoted("tenon.plugin/1"));
  field("id", quoted(to_string(plugin.id)));
  field("version", quoted(to_string(plugin.version)));
  field("name", quoted(to_string(plugin.name)));
  field("vendor", quoted(to_string(plugin.vendor)));
  field("license", quoted(to_string(plugin.license)));
  field("summary", quoted(to_string(plugin.summary)));
  field("library", quoted(library_name));
  field("abi", "{\"major\": " + std::to_string(plugin.abi_major) +
                   ", \"min_host_minor\": " + std::to_string(plugin.min_host_minor) +
                   ", \"built_host_minor\": " + std::to_string(plugin.built_host_minor) + "}");
  field("interfaces", quoted_list(interfaces));
  field("cpu_features", quoted_list(feature_names(plugin.cpu_features)));
  field("cpu_feature_bits", std::to_string(plugin.cpu_features));
  field("operators", quoted_list(defined_operators(plugin)));
  field("kernel_operators", quoted_list(kernel_operators(plugin)), true);
  return out + "}\n";
}

int write_sidecar(const std::filesystem::path& library, const std::string& expected_id,
                  const std::string& expected_version) {
  void* handle = dlopen(std::filesystem::absolute(library).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return fail(library.string(), std::string("cannot be opened: ") + dlerror());
  void* symbol = dlsym(handle, TN_ENTRY_SYMBOL);
  if (symbol == nullptr) {
    return fail(library.string(),
                "exports no " TN_ENTRY_SYMBOL "; define it extern \"C\" with default visibility");
  }
  tenon_plugin_entry_fn entry = nullptr;
  std::memcpy(&entry, &symbol, sizeof entry);  // POSIX's way from an object pointer to a function pointer
  const tn_plugin* plugin = entry(TN_ABI_MAJOR);
  const std::string fault = table_fault(plugin, entry);
  if (!fault.empty()) return fail(library.string(), fault);
  if (!expected_id.empty() && to_string(plugin->id) != expected_id) {
    return fail(library.string(), "the table's id is '" + to_string(plugin->id) +
                                      "'; tenon_add_plugin said ID '" + expected_id +
                                      "' (use TENON_PLUGIN_ID in the source)");
  }
  if (!expected_version.empty() && to_string(plugin->version) != expected_version) {
    return fail(library.string(), "the table's version is '" + to_string(plugin->version) +
                                      "'; tenon_add_plugin said '" + expected_version +
                                      "' (use TENON_PLUGIN_VERSION in the source)");
  }

  std::filesystem::path sidecar = library;
  sidecar.replace_extension(".plugin.json");
  const std::filesystem::path unfinished = sidecar.string() + "." + std::to_string(getpid()) + ".tmp";
  std::ofstream file(unfinished, std::ios::binary | std::ios::trunc);
  file << sidecar_text(*plugin, library.filename().string());
  file.close();
  std::error_code error;
  if (file) std::filesystem::rename(unfinished, sidecar, error);
  if (!file || error) {
    std::error_code ignored;
    std::filesystem::remove(unfinished, ignored);
    return fail(sidecar.string(), "cannot be written" + (error ? ": " + error.message() : std::string()));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::string id;
  std::string version;
  std::string library;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--expect-id" && i + 1 < argc) {
      id = argv[++i];
    } else if (argument == "--expect-version" && i + 1 < argc) {
      version = argv[++i];
    } else if (library.empty() && argument.compare(0, 2, "--") != 0) {
      library = argument;
    } else {
      library.clear();
      break;
    }
  }
  if (library.empty()) {
    std::fprintf(stderr, "usage: tenon-sidecar [--expect-id ID] [--expect-version V] lib<name>.so\n");
    return 2;
  }
  return write_sidecar(library, id, version);
}
