#include "core/plugin/plugin_set.hpp"

#include <sys/stat.h>

#include <tenon/abi/installed.h>

#include <algorithm>
#include <cstdlib>

#include "core/base/text.hpp"
#include "core/plugin/host.hpp"
#include "core/plugin/plugin_table.hpp"

namespace tenon {

namespace {

// The library's name when it has no sidecar that says so: libacme.so -> acme.
std::string name_from_file(const std::filesystem::path& library) {
  const std::string stem = library.stem().string();
  return stem.starts_with("lib") ? stem.substr(3) : stem;
}

std::pair<uint64_t, uint64_t> file_identity(const std::filesystem::path& library) {
  struct stat facts {};
  if (stat(library.c_str(), &facts) != 0) return {0, 0};
  return {facts.st_dev, facts.st_ino};
}

std::string place_of(const PluginRequest& request) {
  return request.where.empty() ? "plugins" : request.where;
}

}  // namespace

std::string QuarantinedPlugin::line() const {
  return "plugin " + library.string() + ": refused: " + refusal.reason +
         (refusal.remedy.empty() ? "" : " -- " + refusal.remedy);
}

PluginSet::PluginSet(Host& host, ScanOptions scan) : host_(host), scan_(std::move(scan)) {
  registries_.provide(host_);
  static const tn_installed_api api = {
      sizeof(tn_installed_api), 0, [](const tn_host* of, tn_str op) -> tn_str {
        auto& self = *static_cast<PluginSet*>(Host::from(of).context(TN_INSTALLED_ID));
        const auto [kept, is_new] = self.with_operator_.try_emplace(string(op));
        if (is_new) {
          const std::vector<std::string> names = self.plugins_with_operator(kept->first);
          if (!names.empty()) kept->second = names.front();
        }
        return to_abi(kept->second);
      }};
  host_.provide(TN_INSTALLED_ID, &api, this);
}

PluginSet::~PluginSet() {
  for (auto plugin = loaded_.rbegin(); plugin != loaded_.rend(); ++plugin) {
    try {
      plugin->table->close(plugin->instance);
    } catch (...) {
      // It broke the boundary's rule while going away; nothing of it is used any more.
    }
  }
}

std::vector<InstalledPlugin> PluginSet::installed(const std::vector<PluginFolder>& folders) {
  std::vector<InstalledPlugin> plugins;
  for (const PluginFolder& folder : folders) {
    if (!folder.is_searched()) continue;
    std::vector<std::filesystem::path> libraries;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path, error)) {
      std::error_code type_error;
      if (entry.path().extension() == ".so" && !entry.is_directory(type_error))
        libraries.push_back(entry.path());
    }
    std::sort(libraries.begin(), libraries.end());
    for (std::filesystem::path& library : libraries) {
      InstalledPlugin plugin;
      const std::filesystem::path sidecar = sidecar_path(library);
      plugin.has_sidecar = std::filesystem::exists(sidecar, error);
      if (plugin.has_sidecar) plugin.sidecar_fault = read_sidecar(sidecar, plugin.facts);
      if (plugin.facts.name.empty()) plugin.facts.name = name_from_file(library);
      plugin.library = std::move(library);
      plugins.push_back(std::move(plugin));
    }
  }
  std::stable_sort(plugins.begin(), plugins.end(), [](const InstalledPlugin& a, const InstalledPlugin& b) {
    if (a.facts.id != b.facts.id) return a.facts.id < b.facts.id;
    return compare_versions(a.facts.version, b.facts.version) > 0;
  });
  return plugins;
}

const std::vector<InstalledPlugin>& PluginSet::read_installed() const {
  if (!installed_read_) {
    installed_ = installed(plugin_folders(scan_.folders));
    installed_read_ = true;
  }
  return installed_;
}

std::vector<std::string> PluginSet::plugins_with_operator(std::string_view op, bool kernel) const {
  std::vector<std::string> found;
  const bool in_any_domain = op.find("::") == std::string_view::npos;
  for (const InstalledPlugin& plugin : read_installed()) {
    const PluginFacts& facts = plugin.facts;
    if (find(facts.name) != nullptr || std::find(found.begin(), found.end(), facts.name) != found.end())
      continue;
    const auto& names = kernel ? facts.kernel_operators : facts.operators;
    const auto has_it = [&](std::string_view name) {
      const size_t domain = name.rfind("::");
      return name == op ||
             (in_any_domain && domain != std::string_view::npos && name.substr(domain + 2) == op);
    };
    if (std::any_of(names.begin(), names.end(), has_it)) found.push_back(facts.name);
  }
  return found;
}

const LoadedPlugin* PluginSet::find(std::string_view name_or_id) const {
  for (const LoadedPlugin& plugin : loaded_) {
    if (plugin.id == name_or_id || plugin.name == name_or_id) return &plugin;
  }
  return nullptr;
}

void PluginSet::load(const std::vector<PluginRequest>& requests, Diagnostics& diagnostics) {
  for (const PluginRequest& request : requests) load_one(request, diagnostics);
}

std::vector<std::filesystem::path> PluginSet::candidates(const PluginRequest& request,
                                                         Diagnostics& diagnostics) {
  if (!request.path.empty()) return {request.path};
  std::vector<InstalledPlugin> found;
  for (const InstalledPlugin& plugin : read_installed()) {
    if (plugin.facts.name == request.name || plugin.facts.id == request.name) found.push_back(plugin);
  }
  // Sorted by id and version already. The same file under two names is one.
  for (size_t i = 0; i < found.size(); ++i) {
    for (size_t j = found.size() - 1; j > i; --j) {
      if (file_identity(found[i].library) == file_identity(found[j].library))
        found.erase(found.begin() + static_cast<ptrdiff_t>(j));
    }
  }
  std::vector<std::filesystem::path> libraries;
  std::string files;
  for (const InstalledPlugin& plugin : found) {
    libraries.push_back(plugin.library);
    files += (files.empty() ? "" : ", ") + plugin.library.string() +
             (plugin.facts.version.empty() ? "" : " (" + plugin.facts.version + ")");
  }
  if (found.size() > 1) {
    diagnostics.info(
        "M310", "plugin " + request.name,
        "is installed " + std::to_string(found.size()) + " times: " + files + "; the first is tried first");
  }
  return libraries;
}

void PluginSet::report_missing(const PluginRequest& request, Diagnostics& diagnostics) const {
  std::vector<std::string> names;
  for (const InstalledPlugin& plugin : read_installed()) names.push_back(plugin.facts.name);
  std::string searched;
  std::string passed_over;
  for (const PluginFolder& folder : plugin_folders(scan_.folders)) {
    if (folder.is_searched())
      searched += (searched.empty() ? "" : ", ") + folder.path.string();
    else if (!folder.is_absent())
      passed_over += "; the folder " + folder.path.string() + " (" + folder.from + ") was passed over: it " +
                     folder.problem;
  }
  diagnostics.add(request.required ? TN_SEVERITY_ERROR : TN_SEVERITY_INFO, "M302", place_of(request),
                  "no plugin '" + request.name + "' is installed in " +
                      (searched.empty() ? std::string("any plugin folder (there is none)") : searched) +
                      did_you_mean(request.name, names) + passed_over +
                      (request.required ? "; install it, name its file by \"path\", or set TENON_PLUGIN_PATH"
                                        : "; the run goes on without it"));
}

bool PluginSet::apply_lock(const PluginRequest& request, std::vector<std::filesystem::path>& libraries,
                           Diagnostics& diagnostics) const {
  if (!lock_) return true;
  const std::string named = request.path.empty() ? request.name : request.path.string();
  const std::string write_again = "write it again with `tenon plugins lock " + lock_->manifest.string() + "`";
  const LockedPlugin* locked = lock_->find(request);
  if (locked == nullptr) {
    diagnostics.error("M330", place_of(request),
                      "plugin " + named + " is not in the lock file " + lock_->file.string() +
                          ", which has all that may be loaded; leave the plugin out, or " + write_again);
    return false;
  }
  if (locked->absent) {
    diagnostics.info("M331", place_of(request),
                     "plugin " + named + " was absent when the lock file " + lock_->file.string() +
                         " was written; the run goes on without it");
    return false;
  }
  std::string others;
  for (const std::filesystem::path& library : libraries) {
    std::error_code error;
    // What is no file, or cannot be read, is refused with its own words later on.
    if (!std::filesystem::is_regular_file(library, error)) return true;
    std::string digest;
    try {
      digest = sha256_file(library);
    } catch (const Error&) {
      return true;
    }
    if (digest == locked->sha256) {
      libraries = {library};
      return true;
    }
    others += (others.empty() ? "" : "; ") + library.string() + " has the sha256 " + digest;
  }
  diagnostics.error("M332", place_of(request),
                    "plugin " + named + ": " + others + "; the lock file " + lock_->file.string() +
                        " expects " + locked->sha256 + " (" + locked->id + " " + locked->version +
                        ") -- put that file back, or, once the new one is known to be right, " + write_again);
  return false;
}

void PluginSet::refuse(const std::filesystem::path& library, const Refusal& refusal,
                       const PluginRequest& request, bool is_last, Diagnostics& diagnostics) {
  QuarantinedPlugin quarantined{library, refusal};
  const bool known = std::any_of(quarantined_.begin(), quarantined_.end(),
                                 [&](const QuarantinedPlugin& other) { return other.library == library; });
  diagnostics.add(request.required && is_last ? TN_SEVERITY_ERROR : TN_SEVERITY_WARNING, "M301",
                  place_of(request), quarantined.line());
  if (!known) quarantined_.push_back(std::move(quarantined));
}

void PluginSet::load_one(const PluginRequest& request, Diagnostics& diagnostics) {
  if (request.path.empty() && find(request.name) != nullptr) return;
  std::vector<std::filesystem::path> libraries = candidates(request, diagnostics);
  if (libraries.empty()) {
    report_missing(request, diagnostics);
    return;
  }
  if (!apply_lock(request, libraries, diagnostics)) return;
  for (size_t i = 0; i < libraries.size(); ++i) {
    const bool is_last = i + 1 == libraries.size();
    const std::optional<Refusal> refusal = open(libraries[i], request, diagnostics);
    if (!refusal) return;
    refuse(libraries[i], *refusal, request, is_last, diagnostics);
  }
}

std::optional<Refusal> PluginSet::check_pins(const std::filesystem::path& library, const PluginFacts& facts,
                                             const PluginRequest& request) {
  if (!request.id.empty() && facts.id != request.id) {
    return Refusal{"has the id '" + facts.id + "'; the manifest expects '" + request.id + "'",
                   "correct \"id\" or \"path\" in the manifest", false};
  }
  if (!request.min_version.empty() && compare_versions(facts.version, request.min_version) < 0) {
    return Refusal{"has version " + facts.version + "; the manifest needs at least " + request.min_version,
                   "install a newer version", false};
  }
  if (!request.sha256.empty()) {
    const std::string is = sha256_file(library);
    if (is != lower(request.sha256)) {
      return Refusal{"has the sha256 " + is + "; the manifest pins " + lower(request.sha256),
                     "install the pinned file, or update the pin after checking the new one", false};
    }
  }
  return std::nullopt;
}

std::optional<Refusal> PluginSet::open(const std::filesystem::path& library, const PluginRequest& request,
                                       Diagnostics& diagnostics) {
  std::error_code error;
  std::filesystem::path file = std::filesystem::canonical(library, error);
  if (error) return Refusal{"there is no such file", "check the path, or install the plugin", false};
  const std::pair<uint64_t, uint64_t> identity = file_identity(file);
  if (std::find(files_.begin(), files_.end(), identity) != files_.end())
    return std::nullopt;  // by another name

  // The pin on the bytes comes before anything of the file runs, in the child too.
  if (!request.sha256.empty()) {
    PluginRequest only_bytes;
    only_bytes.sha256 = request.sha256;
    if (auto refusal = check_pins(file, {}, only_bytes)) return refusal;
  }
  ScanResult scan = scan_plugin(file, scan_);
  if (scan.refusal) return scan.refusal;
  PluginRequest rest = request;
  rest.sha256.clear();
  if (auto refusal = check_pins(file, scan.facts, rest)) return refusal;
  if (const LoadedPlugin* other = find(scan.facts.id)) {
    return Refusal{"has the id '" + scan.facts.id + "' (version " + scan.facts.version + "), which " +
                       other->library.string() + " (version " + other->version + ") has already",
                   "name only one of the two in the manifest", false};
  }

  const auto loaded = load_library(file);
  if (const auto* refusal = std::get_if<Refusal>(&loaded)) return *refusal;
  const auto checked = check_table(std::get<tenon_plugin_entry_fn>(loaded));
  if (const auto* refusal = std::get_if<Refusal>(&checked)) return *refusal;
  const tn_plugin* table = std::get<const tn_plugin*>(checked);

  const tn_host* host = host_.make_plugin_host(scan.facts.name, request.options_json);
  Diagnostics said;
  void* instance = nullptr;
  tn_status status = TN_ERR_INTERNAL;
  try {
    status = table->open(host, said.abi(), &instance);
  } catch (const std::exception& exception) {
    return Refusal{std::string("throws a C++ exception out of open: ") + exception.what(),
                   std::string(ask_vendor), false};
  } catch (...) {
    return Refusal{"throws a C++ exception out of open", std::string(ask_vendor), false};
  }
  if (status != TN_OK) {
    std::string text;
    for (const Diagnostic& diagnostic : said.all()) text += (text.empty() ? "" : "; ") + diagnostic.text;
    return Refusal{
        "its open failed with status " + std::to_string(status) + (text.empty() ? "" : ": " + text),
        "see the plugin's documentation", false};
  }
  diagnostics.append(said);
  const bool has_options = !request.options_json.empty() && request.options_json != "{}";
  if (has_options && !host_.options_were_read(host)) {
    diagnostics.warning(
        "M303", place_of(request),
        "plugin '" + scan.facts.name + "' takes no options; \"options\" of this entry has no effect");
  }
  files_.push_back(identity);
  loaded_.push_back(
      {table, instance, scan.facts.id, scan.facts.name, scan.facts.version, file, scan.from_cache});
  registries_.add_plugin(*table, instance, diagnostics);
  return std::nullopt;
}

}  // namespace tenon
