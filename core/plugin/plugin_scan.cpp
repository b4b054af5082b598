#include "core/plugin/plugin_scan.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>
#include <thread>
#include <variant>

#include "core/plugin/host.hpp"
#include "core/plugin/plugin_table.hpp"
#include "core/plugin/scan_cache.hpp"
#include "core/plugin/scan_protocol.hpp"
#include "core/runtime/cpu_features.hpp"

extern char** environ;

namespace tenon {

namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t max_result_bytes = 16 << 20;
constexpr size_t kept_error_bytes = 8 << 10;

struct Pipe {
  int read_end = -1;
  int write_end = -1;
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) == 0) {
      read_end = ends[0];
      write_end = ends[1];
    }
  }
  ~Pipe() {
    close_end(read_end);
    close_end(write_end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  static void close_end(int& end) {
    if (end >= 0) close(end);
    end = -1;
  }
};

struct ChildEnd {
  std::string result;  // all it wrote to descriptor 3
  std::string errors;  // the end of what it wrote to stderr
  int status = 0;      // of waitpid
  bool timed_out = false;
};

std::chrono::milliseconds time_limit(const ScanOptions& options) {
  const char* text = secure_getenv("TENON_SCAN_TIMEOUT_MS");
  if (text == nullptr) return options.timeout;
  long milliseconds = 0;
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), milliseconds);
  return error == std::errc() && *end == '\0' && milliseconds > 0 ? std::chrono::milliseconds(milliseconds)
                                                                  : options.timeout;
}

std::filesystem::path scan_program(const ScanOptions& options) {
  if (!options.helper.empty()) return options.helper;
  if (scan_hook_is_installed()) return program_file();
  return install_root() / "libexec" / "tenon" / "tenon-scan";
}

// Reads until both pipes are closed, or the time is over.
void collect(Pipe& result, Pipe& errors, Clock::time_point deadline, ChildEnd& end) {
  std::array<char, 16384> buffer;
  while (result.read_end >= 0 || errors.read_end >= 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0 || end.result.size() > max_result_bytes) {
      end.timed_out = true;
      return;
    }
    pollfd watched[2] = {{result.read_end, POLLIN, 0}, {errors.read_end, POLLIN, 0}};
    if (poll(watched, 2, static_cast<int>(left)) < 0 && errno != EINTR) return;
    for (int i = 0; i < 2; ++i) {
      if (watched[i].fd < 0 || watched[i].revents == 0) continue;
      const ssize_t count = read(watched[i].fd, buffer.data(), buffer.size());
      if (count < 0 && errno == EINTR) continue;
      int& own_end = i == 0 ? result.read_end : errors.read_end;
      if (count <= 0) {
        Pipe::close_end(own_end);
        // A grandchild may hold stderr open; the result's end is the child's own.
        if (i == 0 && errors.read_end >= 0)
          deadline = std::min(deadline, Clock::now() + std::chrono::milliseconds(200));
        continue;
      }
      std::string& text = i == 0 ? end.result : end.errors;
      text.append(buffer.data(), static_cast<size_t>(count));
      if (i == 1 && text.size() > 2 * kept_error_bytes) text.erase(0, text.size() - kept_error_bytes);
    }
  }
}

std::variant<ChildEnd, Refusal> run_child(const std::filesystem::path& program,
                                          const std::filesystem::path& library,
                                          std::chrono::milliseconds limit) {
  Pipe result;
  Pipe errors;
  const std::string text = library.string();
  std::array<char*, 4> arguments = {const_cast<char*>("tenon"), const_cast<char*>(scan_argument),
                                    const_cast<char*>(text.c_str()), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, errors.write_end, 2);
  posix_spawn_file_actions_adddup2(&actions, result.write_end, scan_result_descriptor);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  // A group of its own, so that whatever the plugin starts ends with it.
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  pid_t child = -1;
  const int error =
      result.write_end < 0 || errors.write_end < 0
          ? EMFILE
          : posix_spawn(&child, program.c_str(), &actions, &attributes, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    return Refusal{"cannot be scanned: " + program.string() + " cannot be started: " + std::strerror(error),
                   "reinstall tenon, or set the scan helper's path (ScanOptions::helper)", false};
  }
  Pipe::close_end(result.write_end);
  Pipe::close_end(errors.write_end);

  ChildEnd end;
  const Clock::time_point deadline = Clock::now() + limit;
  collect(result, errors, deadline, end);
  const bool has_result = end.result.find("\n{") != std::string::npos;
  if (end.timed_out && has_result) end.timed_out = false;
  // Both pipes closed: it is about to end, unless the plugin closed them and goes on. It is left unreaped
  // until its group was ended, so that its number cannot mean anything else.
  while (!end.timed_out) {
    siginfo_t info{};
    if (waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        info.si_pid == child)
      break;
    if (Clock::now() >= deadline) {
      end.timed_out = !has_result;
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  kill(-child, SIGKILL);
  while (waitpid(child, &end.status, 0) < 0 && errno == EINTR) {
  }
  return end;
}

// "terminate called after ...\n  what():  no licence" -> "no licence"
std::string what_of(const std::string& errors) {
  constexpr std::string_view mark = "what():";
  const size_t found = errors.rfind(mark);
  if (found == std::string::npos) return {};
  const size_t begin = errors.find_first_not_of(' ', found + mark.size());
  return begin == std::string::npos ? std::string() : errors.substr(begin, errors.find('\n', begin) - begin);
}

std::string last_line(const std::string& text) {
  const size_t last = text.find_last_not_of(" \n\t");
  if (last == std::string::npos) return {};
  const size_t begin = text.rfind('\n', last);
  return text.substr(begin == std::string::npos ? 0 : begin + 1,
                     last - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

Refusal ending_refusal(const ChildEnd& end, const std::string& stage, std::chrono::milliseconds limit) {
  if (end.timed_out) {
    return {"does not come back " + stage + " within " + std::to_string(limit.count()) + " ms",
            std::string(ask_vendor), false};
  }
  if (const std::string what = what_of(end.errors); !what.empty())
    return {"throws a C++ exception " + stage + ": " + what, std::string(ask_vendor)};
  if (WIFSIGNALED(end.status)) {
    const char* name = sigabbrev_np(WTERMSIG(end.status));
    std::string text = std::string("crashes ") + stage + " (SIG" + (name == nullptr ? "?" : name) + ")";
    if (WTERMSIG(end.status) == SIGABRT && !last_line(end.errors).empty())
      text += ": " + last_line(end.errors);
    return {std::move(text), std::string(ask_vendor)};
  }
  return {"ends the program " + stage + " (exit status " + std::to_string(WEXITSTATUS(end.status)) + ")" +
              (last_line(end.errors).empty() ? "" : ": " + last_line(end.errors)),
          std::string(ask_vendor)};
}

ScanResult scan_in_child(const std::filesystem::path& library, const ScanOptions& options) {
  ScanResult scan;
  const std::chrono::milliseconds limit = time_limit(options);
  const auto outcome = run_child(scan_program(options), library, limit);
  if (const auto* refusal = std::get_if<Refusal>(&outcome)) {
    scan.refusal = *refusal;
    return scan;
  }
  const auto& end = std::get<ChildEnd>(outcome);
  std::string stage;
  std::string json_text;
  for (size_t begin = 0; begin < end.result.size();) {
    const size_t line_end = std::min(end.result.find('\n', begin), end.result.size());
    const std::string_view line = std::string_view(end.result).substr(begin, line_end - begin);
    if (line.starts_with('@')) stage = line.substr(1);
    if (line.starts_with('{')) json_text = line;
    begin = line_end + 1;
  }
  if (stage.empty()) {
    scan.refusal = Refusal{"cannot be scanned: the scan program did not start its work" +
                               (end.errors.empty() ? std::string() : ": " + last_line(end.errors)),
                           "main() must begin with scan_plugin_main(); reinstall tenon", false};
    return scan;
  }
  try {
    if (!json_text.empty()) {
      const nlohmann::json json = nlohmann::json::parse(json_text);
      if (json.contains("refused")) {
        scan.refusal = Refusal{json.at("refused").get<std::string>(), json.at("remedy").get<std::string>(),
                               json.at("lasting").get<bool>()};
      } else {
        scan.facts = facts_from_json(json.at("facts"));
      }
      return scan;
    }
  } catch (const nlohmann::json::exception&) {
    // Half a line: it died while writing.
  }
  scan.refusal = ending_refusal(end, stage, limit);
  return scan;
}

// The same without a child, for programs that must not start one.
ScanResult scan_in_process(const std::filesystem::path& library) {
  ScanResult scan;
  const auto loaded = load_library(library);
  if (const auto* refusal = std::get_if<Refusal>(&loaded)) {
    scan.refusal = *refusal;
    return scan;
  }
  const auto checked = check_table(std::get<tenon_plugin_entry_fn>(loaded));
  if (const auto* refusal = std::get_if<Refusal>(&checked)) {
    scan.refusal = *refusal;
  } else {
    scan.facts = table_facts(*std::get<const tn_plugin*>(checked));
  }
  return scan;
}

std::optional<Refusal> check_cpu(uint64_t needed) {
  const uint64_t missing = needed & ~cpu_features();
  if (missing == 0) return std::nullopt;
  return Refusal{
      "needs processor features that this machine (or TENON_MAX_ISA) lacks: " + cpu_feature_names(missing),
      "use a build of the plugin for this machine", false};
}

}  // namespace

ScanResult scan_plugin(const std::filesystem::path& library, const ScanOptions& options) {
  ScanResult scan;
  PluginFacts sidecar;
  const std::filesystem::path sidecar_file = sidecar_path(library);
  std::error_code error;
  const bool has_sidecar = std::filesystem::exists(sidecar_file, error);
  if (has_sidecar) {
    scan.refusal = read_sidecar(sidecar_file, sidecar);
    // Static constructors may use the features already, so this comes before any loading.
    if (!scan.refusal) scan.refusal = check_cpu(sidecar.cpu_features);
    if (scan.refusal) return scan;
  }
  if (options.use_cache) {
    if (std::optional<ScanResult> known = ScanCache::shared().find(library)) scan = std::move(*known);
  }
  if (!scan.from_cache) {
    scan.refusal = check_library_file(library);
    if (!scan.refusal) scan = options.use_child ? scan_in_child(library, options) : scan_in_process(library);
    // What was found without a child was not seen to open and close.
    if (options.use_cache && options.use_child && (!scan.refusal || scan.refusal->lasting))
      ScanCache::shared().store(library, scan);
  }
  if (scan.refusal) return scan;
  if (has_sidecar) scan.refusal = compare_facts(sidecar, scan.facts);
  if (!scan.refusal) scan.refusal = check_cpu(scan.facts.cpu_features);
  return scan;
}

}  // namespace tenon
