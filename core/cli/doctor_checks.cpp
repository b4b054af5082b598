#include "core/cli/doctor_checks.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "core/base/files.hpp"
#include "core/base/text.hpp"
#include "core/pipeline/pipeline.hpp"
#include "core/plugin/host.hpp"
#include "core/plugin/plugin_inventory.hpp"
#include "core/runtime/cpu_features.hpp"

extern char** environ;

namespace tenon::cli {

namespace fs = std::filesystem;

namespace {

constexpr const char* reinstall = "install tenon again; all its parts come from one package";

class Doctor {
 public:
  std::vector<DoctorFinding> findings;

  void program() {
    begin("program");
    ok(program_file(), "tenon " + std::string(program_version()) + ", plugin boundary " +
                           std::to_string(TN_ABI_MAJOR) + "." + std::to_string(TN_ABI_MINOR));
  }

  void environment() {
    begin("environment");
    word("TENON_MAX_ISA", "sse42, avx2, avx512, vnni or amx", isa_word_is_known);
    word("TENON_LOG", "debug, info, warning, error or off", [](const std::string& text) {
      return text == "debug" || text == "info" || text == "warning" || text == "error" || text == "off";
    });
    word("TENON_SCAN_TIMEOUT_MS", "a number of milliseconds above 0", [](const std::string& text) {
      long number = 0;
      const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
      return failed == std::errc() && end == text.data() + text.size() && number > 0;
    });
    const char* root = secure_getenv("TENON_ROOT");
    if (root != nullptr && *root != '\0' && !fs::path(root).is_absolute())
      error("TENON_ROOT",
            "is '" + std::string(root) + "', a relative path, which depends on the working folder",
            "write the absolute path, or unset it");
    fine_unless_said("nothing in it stands in the way");
  }

  // False: nothing below it can be looked at.
  bool root() {
    begin("installation");
    const fs::path at = install_root();
    std::error_code failed;
    if (!fs::is_directory(at, failed)) {
      error(at, "is no folder, but everything is looked for in it",
            std::getenv("TENON_ROOT") != nullptr ? "correct TENON_ROOT, or unset it" : reinstall);
      return false;
    }
    const fs::path stamp = at / "share" / "tenon" / "VERSION";
    std::string version;
    try {
      version = read_text_file(stamp, 64);
      while (!version.empty() && version.back() == '\n') version.pop_back();
    } catch (const Error&) {
    }
    if (version.empty())
      error(stamp, "is not there, so the rules and schemas beside it may be of any version", reinstall);
    else if (version != program_version())
      error(stamp, "says version " + version + "; this program is " + std::string(program_version()),
            reinstall);
    else
      ok(at, "version " + version);
    return true;
  }

  void helper() {
    begin("helper");
    const fs::path file = install_root() / "libexec" / "tenon" / "tenon-scan";
    const char* use = "programs that embed libtenon try plugins with it";
    if (access(file.c_str(), F_OK) != 0) {
      error(file, std::string("is not there; ") + use, reinstall);
    } else if (access(file.c_str(), X_OK) != 0) {
      error(file, std::string("may not be started (") + std::strerror(errno) + "); " + use,
            "chmod +x it; or install tenon again");
    } else if (const std::string said = said_by(file); said != program_version()) {
      error(file,
            "answers '" + printable_line(said) + "' when asked for its version; this program is " +
                std::string(program_version()),
            reinstall);
    } else {
      ok(file, "version " + said);
    }
  }

  void library() {
    begin("library");
    const std::string version(program_version());
    const fs::path file = install_root() / "lib" / ("libtenon.so." + version.substr(0, version.find('.')));
    std::error_code failed;
    const fs::path real = fs::canonical(file, failed);
    if (failed)
      warning(file, "is not there: no program here can embed Tenon", reinstall);
    else if (real.filename() != "libtenon.so." + version)
      error(file, "leads to " + real.filename().string() + "; this program is " + version, reinstall);
    else
      ok(file, "version " + version);
  }

  void shared_files() {
    begin("rules");
    json_folder(install_root() / "share" / "tenon" / "rules", {}, Health::error,
                "nothing is fused without them");
    begin("schemas");
    json_folder(install_root() / "share" / "tenon" / "schemas",
                {"default.json", "pipeline.schema.json", "rule.schema.json"}, Health::warning,
                "editors check manifests and rules with them");
  }

  void plugins() {
    begin("plugin folders");
    const std::vector<PluginFolder> folders = plugin_folders();
    for (const PluginFolder& folder : folders) examine_folder(folder);
    begin("plugins");
    for (const InventoryEntry& entry : plugin_inventory(folders, false)) examine_plugin(entry);
    fine_unless_said("none is installed");
  }

  void processor() {
    begin("processor");
    const uint64_t features = cpu_features();
    const std::string text = cpu_feature_names(features) + "; " + std::to_string(usable_processors()) +
                             (usable_processors() == 1 ? " processor" : " processors") + " for this process";
#if defined(__x86_64__)
    if (isa_name(features) == "baseline" || isa_name(features) == "sse42") {
      add(Health::note, "", text + "; without avx2 the fast kernels are not used",
          std::getenv("TENON_MAX_ISA") != nullptr ? "TENON_MAX_ISA is set; unset it" : "");
      return;
    }
#endif
    ok("", text);
  }

  void cache() {
    begin("cache");
    const fs::path folder = cache_folder();
    const char* remedy = "set TENON_CACHE_DIR to a folder that this user may write to";
    const std::string cost = "; every run then scans its plugins again";
    if (folder.empty()) {
      warning("",
              "there is no folder for it: neither TENON_CACHE_DIR, XDG_CACHE_HOME nor HOME says one" + cost,
              remedy);
      return;
    }
    std::error_code failed;
    fs::create_directories(folder, failed);
    if (!failed) {
      std::string probe = (folder / "doctor.XXXXXX").string();
      const int descriptor = mkstemp(probe.data());
      if (descriptor < 0) failed = std::error_code(errno, std::generic_category());
      if (descriptor >= 0) {
        close(descriptor);
        unlink(probe.c_str());
      }
    }
    if (failed)
      warning(folder, "cannot be written to: " + failed.message() + cost, remedy);
    else
      ok(folder, "can be written to");
  }

  // The manifest as a run opens it: its plugins, rules, passes and switches. The default one for an empty
  // path.
  void manifest(const fs::path& path) {
    begin(path.empty() ? "default manifest" : "manifest");
    const fs::path where = path.empty() ? fs::path("default manifest") : path;
    Diagnostics found;
    try {
      Manifest read = path.empty() ? default_manifest({}, found) : read_manifest(path, {}, found);
      const fs::path lock = read.lock_file;
      const Engine engine(std::move(read));
      found.append(engine.diagnostics());
      report(found.all(), where);
      fine_unless_said("opens", where);
      if (!lock.empty()) {
        begin("lock file");
        report_lock(lock, path);
      }
    } catch (const Error& thrown) {
      report(found.all(), where);
      report(thrown.diagnostics, where);
    }
  }

 private:
  void begin(std::string check) {
    check_ = std::move(check);
    first_ = findings.size();
  }
  void add(Health health, const fs::path& where, std::string text, std::string remedy) {
    findings.push_back({check_, health, where.string(), std::move(text), std::move(remedy)});
  }
  void ok(const fs::path& where, std::string text) { add(Health::ok, where, std::move(text), {}); }
  void warning(const fs::path& where, std::string text, std::string remedy) {
    add(Health::warning, where, std::move(text), std::move(remedy));
  }
  void error(const fs::path& where, std::string text, std::string remedy) {
    add(Health::error, where, std::move(text), std::move(remedy));
  }
  void fine_unless_said(std::string text, const fs::path& where = {}) {
    if (findings.size() == first_) ok(where, std::move(text));
  }

  template <class IsKnown>
  void word(const char* variable, const char* expected, IsKnown is_known) {
    const char* text = secure_getenv(variable);
    if (text == nullptr || *text == '\0' || is_known(std::string(text))) return;
    warning(variable, "is '" + printable_line(text) + "'; expected " + expected + ", so it has no effect",
            "correct it, or unset it");
  }

  static std::string printable_line(std::string_view text) {
    std::string line;
    for (const char c : text.substr(0, 80)) line += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    return line;
  }

  // The first line that `program --version` prints; empty when it cannot be had.
  static std::string said_by(const fs::path& program) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return {};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    const std::string name = program.string();
    std::string argument = "--version";
    char* const arguments[] = {const_cast<char*>(name.c_str()), argument.data(), nullptr};
    pid_t child = -1;
    const int failed = posix_spawn(&child, name.c_str(), &actions, nullptr, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    std::string said;
    if (failed == 0) {
      char buffer[256];
      ssize_t count = 0;
      while (said.size() < sizeof buffer && (count = read(ends[0], buffer, sizeof buffer)) > 0)
        said.append(buffer, static_cast<size_t>(count));
    }
    close(ends[0]);
    if (failed == 0) {
      int status = 0;
      while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
      }
    }
    return said.substr(0, said.find('\n'));
  }

  void json_folder(const fs::path& folder, const std::vector<std::string>& needed, Health health,
                   const char* use) {
    std::error_code failed;
    if (!fs::is_directory(folder, failed)) {
      add(health, folder, std::string("is not there; ") + use, reinstall);
      return;
    }
    size_t count = 0;
    for (const auto& entry : fs::directory_iterator(folder, failed)) {
      if (entry.path().extension() != ".json") continue;
      ++count;
      try {
        Diagnostics found;
        JsonSource::parse(entry.path().string(), read_text_file(entry.path(), uint64_t{64} << 20), found);
        found.throw_if_errors(exit_bad_input);
      } catch (const Error& thrown) {
        error(entry.path(), thrown.diagnostics.front().text, reinstall);
      }
    }
    if (failed)
      add(health, folder, "cannot be read: " + failed.message(), "give this user permission to read it");
    if (!failed && count == 0) add(health, folder, std::string("has no .json file; ") + use, reinstall);
    for (const std::string& name : needed)
      if (!failed && count != 0 && !fs::exists(folder / name))
        add(health, folder / name, "is not there", reinstall);
    fine_unless_said(std::to_string(count) + " files", folder);
  }

  void examine_folder(const PluginFolder& folder) {
    if (!folder.problem.empty()) {
      error(folder.path, "(" + folder.from + ") " + folder.problem + "; it is not searched", folder.remedy);
      return;
    }
    if (!folder.exists) {
      if (folder.from == "the installation")
        error(folder.path, "is not there: no built-in plugin can be had", reinstall);
      return;  // one's own may be missing
    }
    struct stat facts {};
    if (stat(folder.path.c_str(), &facts) == 0 && (facts.st_mode & S_IWOTH) != 0) {
      warning(folder.path, "may be written to by anybody, and what lies in it runs as you",
              "chmod o-w " + folder.path.string());
      return;
    }
    ok(folder.path, "(" + folder.from + ")");
  }

  void examine_plugin(const InventoryEntry& entry) {
    const fs::path& file = entry.plugin.library;
    if (!entry.same_file_as.empty()) {
      add(Health::note, file, "is the same file as " + entry.same_file_as.string() + "; it loads once", {});
      return;
    }
    std::optional<Refusal> refusal = entry.refusal;
    PluginFacts facts = entry.plugin.facts;
    if (!refusal) {
      std::error_code failed;
      const ScanResult scan = scan_plugin(fs::canonical(file, failed));
      refusal = scan.refusal;
      if (!refusal) facts = scan.facts;
    }
    if (refusal) {
      // A plugin that nobody names does no harm; the manifests below say whether it is missed.
      warning(file, "is refused: " + refusal->reason, refusal->remedy);
      return;
    }
    if (facts.id.starts_with("tenon.") && facts.version != program_version()) {
      error(file,
            "is the built-in plugin " + facts.id + " of version " + facts.version + "; this program is " +
                std::string(program_version()),
            reinstall);
      return;
    }
    if (!entry.plugin.has_sidecar) {
      warning(file,
              "has no sidecar " + sidecar_path(file).filename().string() +
                  ": its name and operators are not known before it is opened",
              "install the .plugin.json beside it, or write it with tenon-sidecar");
      return;
    }
    if (!entry.shadowed_by.empty()) {
      add(Health::note, file,
          facts.id + " " + facts.version + " is shadowed by " + entry.shadowed_by.string(),
          "remove the one that is not wanted");
      return;
    }
    ok(file, facts.id + " " + facts.version);
  }

  // Findings of opening a manifest, each under the check it belongs to.
  void report(const std::vector<Diagnostic>& found, const fs::path& where) {
    const std::string check = check_;
    for (const Diagnostic& finding : found) {
      if (finding.severity < TN_SEVERITY_WARNING) continue;
      check_ =
          finding.code == "M330" || finding.code == "M332" || finding.code == "M333" ? "lock file" : check;
      // Messages of this program end with their remedy.
      add(finding.severity == TN_SEVERITY_WARNING ? Health::warning : Health::error,
          finding.where.empty() ? where : fs::path(finding.where),
          (finding.code.empty() ? "" : finding.code + " ") + finding.text, {});
    }
    check_ = check;
  }

  void report_lock(const fs::path& file, const fs::path& manifest) {
    const PluginLock lock = read_plugin_lock(file, manifest);
    if (lock.host_version != program_version())
      warning(
          file,
          "was written by tenon " + lock.host_version + "; this program is " + std::string(program_version()),
          "write it again with `tenon plugins lock " + manifest.string() + "`");
    else
      ok(file, std::to_string(lock.plugins.size()) + " plugins, all as they were");
  }

  std::string check_;
  size_t first_ = 0;
};

}  // namespace

const char* health_name(Health health) {
  switch (health) {
    case Health::ok:
      return "ok";
    case Health::note:
      return "note";
    case Health::warning:
      return "warning";
    case Health::error:
      return "error";
  }
  return "";
}

std::vector<DoctorFinding> examine_installation(const fs::path& manifest) {
  Doctor doctor;
  doctor.program();
  doctor.environment();
  doctor.processor();
  doctor.cache();
  if (doctor.root()) {
    doctor.helper();
    doctor.library();
    doctor.shared_files();
    doctor.plugins();
    doctor.manifest({});
    if (!manifest.empty()) doctor.manifest(manifest);
  }
  return std::move(doctor.findings);
}

}  // namespace tenon::cli
