// The program: parses, calls one verb, turns errors into messages and exit codes (0 fine, 1 the job failed, 2
// bad input).
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <cstdio>
#include <new>

#include "core/base/crash_report.hpp"
#include "core/base/text.hpp"
#include "core/check/runner.hpp"
#include "core/cli/common.hpp"
#include "core/cli/man_pages.hpp"
#include "core/plugin/host.hpp"
#include "core/plugin/plugin_scan.hpp"

namespace tenon::cli {
namespace {

int parse_error(CLI::App& app, const CLI::ParseError& e) {
  if (e.get_exit_code() == 0) return app.exit(e);  // --help, --version
  std::string text = e.what();
  // An unknown verb: name the nearest.
  std::vector<std::string> verbs;
  for (const auto* sub : app.get_subcommands({})) verbs.push_back(sub->get_name());
  if (const auto rest = app.remaining(); !rest.empty() && app.get_subcommands().empty())
    text = fmt::format("no verb '{}'{}", rest.front(), did_you_mean(rest.front(), verbs));
  for (const auto* sub : app.get_subcommands()) {
    std::vector<std::string> options;
    for (const auto* o : sub->get_options())
      for (const auto& name : o->get_lnames()) options.push_back("--" + name);
    for (const auto& word : sub->remaining())
      if (word.rfind("--", 0) == 0) text += did_you_mean(word.substr(0, word.find('=')), options);
  }
  std::fprintf(stderr, "tenon: error: %s\nRun `tenon --help`, or `tenon VERB --help`.\n", text.c_str());
  return exit_bad_input;
}

int main(int argc, char** argv) {
  CLI::App app{"Tenon optimises and runs neural-network graphs with plugins, rules and a manifest."};
  app.name("tenon");
  app.set_version_flag("--version", std::string(program_version()));
  app.require_subcommand(1);
  Action action;
  for (auto* add : {add_run, add_optimize, add_bench, add_explain, add_check, add_rules, add_plugins,
                    add_listings, add_doctor})
    add(app, action);
  // The build asks for them; cmake/packaging.cmake.
  if (argc == 3 && std::string_view(argv[1]) == "--write-man-pages") return write_man_pages(app, argv[2]);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return parse_error(app, e);
  }
  try {
    return action();
  } catch (const Error& e) {
    print_findings(e.diagnostics, true);
    return e.exit_code;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "tenon: error: out of memory\n");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "tenon: error: %s\n", e.what());
  }
  return exit_job_failed;
}

}  // namespace
}  // namespace tenon::cli

int main(int argc, char** argv) {
  if (const int code = tenon::scan_plugin_main(argc, argv); code >= 0) return code;
  if (const int code = tenon::check::check_child_main(argc, argv); code >= 0) return code;
  tenon::install_crash_reports();
  return tenon::cli::main(argc, argv);
}
