// tenon plugins check: the conformance suite over one plugin.
#include "core/base/text.hpp"
#include "core/check/report.hpp"
#include "core/cli/common.hpp"
#include "core/plugin/plugin_set.hpp"

namespace tenon::cli {

namespace fs = std::filesystem;

namespace {

struct Options {
  std::string plugin, samples, out = ".";
  std::vector<std::string> only;
  int level = check::level_count;
  uint64_t seed = 1;
  uint32_t effort = 1, timeout = 300;
  bool json = false, list = false, first = false;
};

fs::path library_of(const std::string& plugin) {
  std::error_code error;
  if (plugin.find('/') != std::string::npos || fs::path(plugin).extension() == ".so") {
    fs::path library = fs::absolute(plugin);
    if (!fs::exists(library, error))
      throw Error(exit_bad_input, plugin, "there is no such file; build the plugin first, or check the path");
    return library;
  }
  std::vector<std::string> names;
  for (const InstalledPlugin& installed : PluginSet::installed()) {
    if (installed.facts.name == plugin || installed.facts.id == plugin) return installed.library;
    names.push_back(installed.facts.name);
  }
  throw Error(exit_bad_input, plugin,
              "no installed plugin has this name or id" + did_you_mean(plugin, names) +
                  "; a library is named by its path, such as build/libacme.so");
}

int list_checks(bool json) {
  Json all = Json::array();
  for (const check::Check& one : check::all_checks()) {
    if (json)
      all.push_back({{"id", one.id},
                     {"level", one.level()},
                     {"title", one.title},
                     {"consequence", one.consequence},
                     {"host", one.host}});
    else
      std::printf("%-5s %s\n", one.id, one.title);
  }
  if (json) print_json(all);
  return 0;
}

int check_plugin(const Options& o) {
  if (o.list) return list_checks(o.json);
  if (o.plugin.empty())
    throw Error(exit_bad_input, "plugins check",
                "names no plugin; give a library's path, or an installed name");
  check::Request request;
  request.library = library_of(o.plugin);
  request.seed = o.seed;
  request.effort = o.effort;
  request.out = o.out;
  if (!o.samples.empty()) request.samples = fs::absolute(o.samples);
  for (const fs::path& folder : {request.samples, request.out})
    if (!folder.empty() && !fs::is_directory(folder))
      throw Error(exit_bad_input, folder.string(), "is no folder; make it, or name another");
  std::vector<std::string> unknown;
  const auto checks = check::select_checks(o.only, o.level, unknown);
  if (!unknown.empty())
    throw Error(
        exit_bad_input, "--only",
        fmt::format("there is no check or level {}; `tenon plugins check --list` has all", unknown.front()));
  check::RunOptions options;
  options.limit = std::chrono::seconds(o.timeout);
  options.stop_at_first = o.first;
  int level = 0;
  if (!o.json)
    options.progress = [&](const check::Result& result) {
      if (result.check->level() != level) {
        level = result.check->level();
        std::printf("level %d: %s\n", level, std::string(check::level_name(level)).c_str());
      }
      std::printf("%s", printable(check::text_of(result, request)).c_str());
      std::fflush(stdout);
    };
  const std::vector<check::Result> results = check::run_checks(checks, request, options);
  if (o.json)
    print_json(check::to_json(results, request));
  else
    std::printf("%s", check::summary_of(results).c_str());
  return check::any_failed(results) ? exit_job_failed : 0;
}

}  // namespace

void add_plugins_check(CLI::App& plugins, Action& action) {
  auto o = std::make_shared<Options>();
  auto* c = plugins.add_subcommand("check",
                                   "the conformance suite: seven levels, each check in a child of its own");
  c->add_option("plugin", o->plugin, "a library's path, or an installed name or id");
  c->add_option("--level", o->level, "this level and those below it (1 to 7)")
      ->check(CLI::Range(1, check::level_count));
  c->add_option("--only", o->only, "these checks (4.7) or whole levels (4); commas between")->delimiter(',');
  c->add_option("--seed", o->seed, "of everything drawn at random");
  c->add_option("--effort", o->effort, "how many times as much is drawn at random (1 to 1000)")
      ->check(CLI::Range(1, 1000));
  c->add_option("--samples", o->samples,
                "a folder with graphs (*.graph), models and tensor files to use as well");
  c->add_option("--out", o->out, "where files that make it crash are kept");
  c->add_option("--timeout", o->timeout, "seconds for one child")->check(CLI::Range(1, 86400));
  c->add_flag("--first", o->first, "stop at the first check that fails");
  c->add_flag("--list", o->list, "the numbers and what they mean");
  c->add_flag("--json", o->json, "print JSON");
  c->callback([o, &action] { action = [o] { return check_plugin(*o); }; });
}

}  // namespace tenon::cli
