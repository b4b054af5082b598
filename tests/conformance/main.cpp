// Runs ONNX's own tests against Tenon: see README.md.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>

#include "core/base/text.hpp"
#include "core/plugin/host.hpp"
#include "core/runtime/cpu_features.hpp"
#include "expectations.hpp"
#include "report.hpp"
#include "runner.hpp"
#include "workers.hpp"

namespace tenon::conformance {

namespace {

// Known to CTest as "skipped", beside 0, 1 for surprises and 2 for bad usage.
constexpr int exit_no_data = 77;

struct Options {
  std::string data = TENON_BINARY_DIR "/conformance-data";
  std::string list = TENON_SOURCE_DIR "/tests/conformance/skipped.txt";
  std::string root = TENON_BINARY_DIR;
  std::string failures;
  std::vector<std::string> filters, modes;
  unsigned jobs = usable_processors();
  unsigned limit_seconds = 120;
  bool only_names = false, verbose = false;
};

struct Job {
  size_t mode, test;
};

bool chosen(const std::vector<std::string>& patterns, const std::string& name) {
  if (patterns.empty()) return true;
  for (const std::string& pattern : patterns)
    if (glob_match(pattern, name)) return true;
  return false;
}

// A word without '*' or '?' is looked for anywhere in the name.
std::vector<std::string> as_globs(std::vector<std::string> filters) {
  for (std::string& filter : filters)
    if (filter.find_first_of("*?") == std::string::npos) filter = "*" + filter + "*";
  return filters;
}

std::vector<Mode> chosen_modes(const Options& options) {
  std::vector<Mode> modes = all_modes();
  std::string known;
  for (const Mode& mode : modes) known += " " + mode.name;
  std::erase_if(modes, [&](const Mode& mode) { return !chosen(options.modes, mode.name); });
  if (modes.empty()) throw std::runtime_error("--mode: none matches; there are" + known);
  return modes;
}

// The long tests first and alone, so that no worker is left with one at the end; the others in batches, mode
// by mode, so that a worker seldom loads plugins anew.
std::vector<Batch> make_batches(const std::vector<Job>& jobs, const std::vector<Case>& cases) {
  constexpr size_t batch_size = 48;
  std::vector<Batch> batches;
  for (size_t i = 0; i < jobs.size(); ++i) {
    const bool is_long = cases[jobs[i].test].suite() == "light";
    const bool joins = !batches.empty() && !is_long &&
                       batches.back().last - batches.back().first < batch_size &&
                       jobs[batches.back().first].mode == jobs[i].mode &&
                       cases[jobs[batches.back().first].test].suite() != "light";
    if (joins)
      ++batches.back().last;
    else
      batches.push_back({i, i + 1});
  }
  return batches;
}

int run(const Options& options) {
  if (!has_cases(options.data)) {
    std::printf("conformance: not run: %s holds no tests; scripts/ci/30-conformance.sh makes them\n",
                options.data.c_str());
    return exit_no_data;
  }
  set_install_root(std::filesystem::absolute(options.root));
  const ExpectationList list = ExpectationList::read(options.list);
  std::vector<Case> cases = read_cases(options.data);
  const std::vector<std::string> stale = list.stale(cases);
  const std::vector<std::string> filters = as_globs(options.filters);
  std::erase_if(cases, [&](const Case& one) { return !chosen(filters, one.name); });
  if (cases.empty()) throw std::runtime_error("--filter: no test matches");
  if (options.only_names) {
    for (const Case& one : cases) std::printf("%s\n", one.name.c_str());
    return 0;
  }

  const std::vector<Mode> modes = chosen_modes(options);
  std::vector<std::string> mode_names;
  for (const Mode& mode : modes) mode_names.push_back(mode.name);
  Report report(list);
  std::vector<Job> jobs;
  for (const bool want_long : {true, false})
    for (size_t mode = 0; mode < modes.size(); ++mode)
      for (size_t test = 0; test < cases.size(); ++test) {
        if ((cases[test].suite() == "light") != want_long) continue;
        if (list.of(cases[test].name, modes[mode].name) == Expectation::not_run)
          report.add_not_run(modes[mode].name);
        else
          jobs.push_back({mode, test});
      }

  std::unique_ptr<Runner> runner;  // of a worker, for the mode it is at
  size_t runner_mode = modes.size();
  const auto work = [&](size_t job) -> std::string {
    const Mode& mode = modes[jobs[job].mode];
    const Case& one = cases[jobs[job].test];
    if (jobs[job].mode != runner_mode) {
      runner.reset();
      runner_mode = modes.size();
      try {
        runner = std::make_unique<Runner>(mode);
      } catch (const std::exception& error) {
        return "the mode cannot be set up: " + std::string(error.what());
      }
      runner_mode = jobs[job].mode;
    }
    return runner->run(one, list.of(one.name, mode.name) == Expectation::shape_only);
  };
  const auto done = [&](size_t job, const std::string& fault, bool lost) {
    const std::string& test = cases[jobs[job].test].name;
    const std::string& mode = modes[jobs[job].mode].name;
    if (options.verbose)
      std::printf("%s [%s] %s\n", fault.empty() ? "ok" : "not ok", mode.c_str(), test.c_str());
    report.add(test, mode, fault, lost);
  };
  run_in_workers(make_batches(jobs, cases), options.jobs, std::chrono::seconds(options.limit_seconds), work,
                 done);

  for (const std::string& line : stale) std::printf("%s\n", line.c_str());
  report.print(mode_names);
  if (!options.failures.empty()) {
    std::ofstream out(options.failures);
    for (const std::string& line : report.failures()) out << line << "\n";
    if (!out.flush()) throw std::runtime_error(options.failures + " cannot be written");
  }
  const uint64_t surprises = report.surprises() + stale.size();
  if (surprises == 0) return 0;
  std::printf("conformance: %llu results are not as %s says\n", static_cast<unsigned long long>(surprises),
              options.list.c_str());
  return 1;
}

}  // namespace
}  // namespace tenon::conformance

int main(int argc, char** argv) {
  tenon::conformance::Options options;
  CLI::App app("Runs ONNX's own tests, as generate.py writes them, in one or all modes.");
  app.add_option("--data", options.data, "folder that generate.py wrote")
      ->type_name("DIR")
      ->envname("TENON_CONFORMANCE_DATA");
  app.add_option("--root", options.root,
                 "built or installed tree whose plugins and rules run; default: its own")
      ->type_name("DIR");
  app.add_option("--expected", options.list, "list of tests that do not simply pass")->type_name("FILE");
  app.add_option("--mode", options.modes,
                 "optimised, unoptimised, reference, pass:NAME, or a glob; default: all")
      ->allow_extra_args(false);
  app.add_option("--filter", options.filters, "part of a test's name, or a glob over it")
      ->allow_extra_args(false);
  app.add_option("--jobs", options.jobs, "worker processes; 0: everything in this process, for a debugger");
  app.add_option("--limit", options.limit_seconds, "seconds that one test may take");
  app.add_option("--failures", options.failures, "write unexpected failures here, as lines for the list")
      ->type_name("FILE");
  app.add_flag("--list", options.only_names, "print the names of the tests and stop");
  app.add_flag("--verbose,-v", options.verbose, "print a line a test");
  try {
    app.parse(argc, argv);
    return tenon::conformance::run(options);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "conformance: %s\n", error.what());
    return 2;
  }
}
