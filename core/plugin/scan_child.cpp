// The child's side: load the library, check its table, open and close it once, and write down what was found.
// What the plugin does to the process meanwhile (a crash, exit(), an endless loop) is the parent's to tell,
// from the last stage that was announced.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/base/diagnostics.hpp"
#include "core/plugin/host.hpp"
#include "core/plugin/plugin_table.hpp"
#include "core/plugin/registries.hpp"
#include "core/plugin/scan_protocol.hpp"
#include "core/runtime/eval.hpp"

namespace tenon {

namespace {

std::atomic<bool> hook_installed{false};

void write_line(std::string text) {
  text += '\n';
  size_t written = 0;
  while (written < text.size()) {
    const ssize_t count = write(scan_result_descriptor, text.data() + written, text.size() - written);
    if (count <= 0) return;
    written += static_cast<size_t>(count);
  }
}

void announce(std::string_view stage) { write_line("@" + std::string(stage)); }

int report(const std::optional<Refusal>& refusal, const PluginFacts& facts) {
  nlohmann::json result = refusal ? nlohmann::json{{"refused", refusal->reason},
                                                   {"remedy", refusal->remedy},
                                                   {"lasting", refusal->lasting}}
                                  : nlohmann::json{{"facts", facts_to_json(facts)}};
  write_line(result.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  return 0;
}

std::string joined_texts(const Diagnostics& diagnostics) {
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics.all()) text += (text.empty() ? "" : "; ") + diagnostic.text;
  return text;
}

int scan(const std::filesystem::path& library) {
  announce("while it is loaded");
  const auto loaded = load_library(library);
  if (const auto* refusal = std::get_if<Refusal>(&loaded)) return report(*refusal, {});
  announce("in its entry function");
  const auto checked = check_table(std::get<tenon_plugin_entry_fn>(loaded));
  if (const auto* refusal = std::get_if<Refusal>(&checked)) return report(*refusal, {});
  const tn_plugin& table = *std::get<const tn_plugin*>(checked);
  const PluginFacts facts = table_facts(table);

  Host host;
  provide_core_services(host);
  Registries registries;
  registries.provide(host);
  // Only so that it is there; nothing is computed while a plugin opens.
  host.provide(TN_EVAL_ID, Evaluator::api());
  Diagnostics diagnostics;
  announce("in open");
  void* instance = nullptr;
  try {
    const tn_status status =
        table.open(host.make_plugin_host(facts.name, "{}"), diagnostics.abi(), &instance);
    if (status != TN_OK) {
      const std::string text = joined_texts(diagnostics);
      return report(
          Refusal{"its open failed with status " + std::to_string(status) + (text.empty() ? "" : ": " + text),
                  "see the plugin's documentation", false},
          {});
    }
    announce("in close");
    table.close(instance);
  } catch (const std::exception& error) {
    return report(Refusal{std::string("throws a C++ exception out of open or close: ") + error.what(),
                          std::string(ask_vendor)},
                  {});
  } catch (...) {
    return report(Refusal{"throws a C++ exception out of open or close", std::string(ask_vendor)}, {});
  }
  return report(std::nullopt, facts);
}

}  // namespace

bool scan_hook_is_installed() { return hook_installed; }

int scan_plugin_main(int argc, char** argv) {
  hook_installed = true;
  if (argc != 3 || std::string_view(argv[1]) != scan_argument || fcntl(scan_result_descriptor, F_GETFD) < 0)
    return -1;
  // The parent tells a crash by the signal, and nobody wants a core file of it.
  for (const int signal_number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT})
    std::signal(signal_number, SIG_DFL);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  const int code = scan(argv[2]);
  // Not exit(): the plugin's static destructors are no part of the question.
  _exit(code);
}

}  // namespace tenon
