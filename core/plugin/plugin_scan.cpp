#include "core/plugin/plugin_scan.hpp"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>
#include <variant>

#include "core/base/child_process.hpp"
#include "core/plugin/host.hpp"
#include "core/plugin/plugin_table.hpp"
#include "core/plugin/scan_cache.hpp"
#include "core/plugin/scan_protocol.hpp"
#include "core/runtime/cpu_features.hpp"

namespace tenon {

namespace {

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

Refusal ending_refusal(const ChildEnd& end, const std::string& stage, std::chrono::milliseconds limit) {
  return {ending_text(end, stage, limit), std::string(ask_vendor), !end.timed_out};
}

ScanResult scan_in_child(const std::filesystem::path& library, const ScanOptions& options) {
  ScanResult scan;
  const std::chrono::milliseconds limit = time_limit(options);
  ChildRequest request{scan_program(options), {scan_argument, library.string()}, limit};
  request.is_complete = [](const std::string& result) { return result.find("\n{") != std::string::npos; };
  const ChildEnd end = run_child(request);
  if (end.start_error != 0) {
    scan.refusal = Refusal{"cannot be scanned: " + request.program.string() +
                               " cannot be started: " + std::strerror(end.start_error),
                           "reinstall tenon, or set the scan helper's path (ScanOptions::helper)", false};
    return scan;
  }
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
