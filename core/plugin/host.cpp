#include "core/plugin/host.hpp"

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>
#include <tenon/abi/options.h>

#include <cstdlib>
#include <mutex>
#include <utility>

namespace tenon {

namespace {

tn_str as_tn_str(std::string_view text) { return {text.data(), text.size()}; }

std::mutex root_mutex;
std::filesystem::path& root_override() {
  static std::filesystem::path path;
  return path;
}

}  // namespace

std::string_view program_version() { return TENON_VERSION_STRING; }

std::filesystem::path program_file() {
  static constexpr const char* link = "/proc/self/exe";
  std::error_code error;
  std::filesystem::path program = std::filesystem::read_symlink(link, error);
  return !error && std::filesystem::exists(program, error) ? program : std::filesystem::path(link);
}

const std::filesystem::path& code_file() {
  static const std::filesystem::path file = [] {
    Dl_info symbol{};
    link_map* object = nullptr;
    if (dladdr1(reinterpret_cast<const void*>(&program_version), &symbol, reinterpret_cast<void**>(&object),
                RTLD_DL_LINKMAP) == 0 ||
        object == nullptr || object->l_name == nullptr || object->l_name[0] == '\0')
      return program_file();  // the loader's name of the main program is empty
    // Links are resolved: a library that is found through one still has its own neighbours.
    std::error_code error;
    std::filesystem::path library = std::filesystem::canonical(object->l_name, error);
    return error ? std::filesystem::absolute(object->l_name) : library;
  }();
  return file;
}

const std::string& build_id() {
  static const std::string id = [] {
    struct stat facts {};
    if (stat(code_file().c_str(), &facts) != 0) return std::string("unknown");
    return std::to_string(facts.st_size) + "-" + std::to_string(facts.st_mtim.tv_sec) + "." +
           std::to_string(facts.st_mtim.tv_nsec);
  }();
  return id;
}

std::filesystem::path install_root() {
  {
    const std::lock_guard lock(root_mutex);
    if (!root_override().empty()) return root_override();
  }
  if (const char* root = secure_getenv("TENON_ROOT"); root != nullptr && *root != '\0') return root;
  return code_file().parent_path().parent_path();
}

void set_install_root(std::filesystem::path root) {
  const std::lock_guard lock(root_mutex);
  root_override() = std::move(root);
}

// The tn_host comes first, so the pointer that a plugin hands back is a pointer to this.
struct Host::PluginHost : tn_host {
  Host* owner = nullptr;
  std::string plugin;
  std::string options_json;
  mutable bool options_read = false;
};

namespace {

// Defined after PluginHost is complete; see Host::make_plugin_host.
tn_str options_json_of(const tn_host* host);
constexpr tn_plugin_options_api options_api = {sizeof(tn_plugin_options_api), 0, &options_json_of};

}  // namespace

Host::Host() { make_plugin_host({}, "{}"); }
Host::~Host() = default;

void Host::provide(std::string id, const void* table, void* service_context) {
  services_[std::move(id)] = Service{table, service_context};
}

const void* Host::find(std::string_view id) const {
  const auto found = services_.find(id);
  return found == services_.end() ? nullptr : found->second.table;
}

void* Host::context(std::string_view id) const {
  const auto found = services_.find(id);
  return found == services_.end() ? nullptr : found->second.context;
}

const tn_host* Host::abi() const { return plugin_hosts_.front().get(); }

const tn_host* Host::make_plugin_host(std::string plugin, std::string options_json) {
  auto made = std::make_unique<PluginHost>();
  made->size = sizeof(tn_host);
  made->abi_major = TN_ABI_MAJOR;
  made->abi_minor = TN_ABI_MINOR;
  made->version = as_tn_str(program_version());
  made->get_interface = [](const tn_host* host, const char* id) -> const void* {
    if (host == nullptr || id == nullptr) return nullptr;
    const auto* self = static_cast<const PluginHost*>(host);
    if (std::string_view(id) == TN_PLUGIN_OPTIONS_ID) {
      self->options_read = true;
      return &options_api;
    }
    return self->owner->find(id);
  };
  made->owner = this;
  made->plugin = std::move(plugin);
  made->options_json = options_json.empty() ? "{}" : std::move(options_json);
  plugin_hosts_.push_back(std::move(made));
  return plugin_hosts_.back().get();
}

bool Host::options_were_read(const tn_host* plugin_host) const {
  return static_cast<const PluginHost*>(plugin_host)->options_read;
}

std::string_view Host::options_of(const tn_host* plugin_host) {
  return static_cast<const PluginHost*>(plugin_host)->options_json;
}

Host& Host::from(const tn_host* host) { return *static_cast<const PluginHost*>(host)->owner; }

namespace {

tn_str options_json_of(const tn_host* host) { return as_tn_str(Host::options_of(host)); }

}  // namespace

}  // namespace tenon
