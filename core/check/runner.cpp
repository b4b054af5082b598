#include "core/check/runner.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/base/child_process.hpp"
#include "core/base/text.hpp"
#include "core/check/checker.hpp"
#include "core/plugin/host.hpp"

namespace tenon::check {

namespace {

constexpr char child_argument[] = "--check-plugin";
constexpr uint64_t most_endings = 5;  // of children of one check; then it is given up

nlohmann::json to_json(const Request& request, const Check& check, const std::vector<uint64_t>& ended_at,
                       const std::filesystem::path& scratch) {
  return {{"library", request.library.string()},
          {"seed", request.seed},
          {"effort", request.effort},
          {"samples", request.samples.string()},
          {"scratch", scratch.string()},
          {"check", check.id},
          {"ended_at", ended_at}};
}

struct Folder {
  std::filesystem::path path;
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tenon-check-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr)
      throw Error(exit_job_failed, pattern, std::string("cannot be made: ") + std::strerror(errno));
    path = pattern;
  }
  ~Folder() {
    std::error_code error;
    std::filesystem::remove_all(path, error);
  }
};

// What made a child come to its end, out of the folder that goes away.
std::filesystem::path keep(const std::filesystem::path& file, const Check& check, const Request& request) {
  std::error_code error;
  if (file.empty() || !std::filesystem::exists(file, error)) return {};
  const std::filesystem::path kept =
      request.out / fmt::format("tenon-check-{}-{}-{}", check.id, request.seed, file.filename().string());
  std::filesystem::copy_file(file, kept, std::filesystem::copy_options::overwrite_existing, error);
  return error ? std::filesystem::path() : kept;
}

int run_in_child(const nlohmann::json& json) {
  Request request;
  request.library = json.at("library").get<std::string>();
  request.seed = json.at("seed");
  request.effort = json.at("effort");
  request.samples = json.at("samples").get<std::string>();
  request.scratch = json.at("scratch").get<std::string>();
  const std::string id = json.at("check");
  for (const Check& check : all_checks()) {
    if (id != check.id) continue;
    Checker checker(request, id, json.at("ended_at").get<std::vector<uint64_t>>());
    // The stage before the first subject is not the check's own: loading and opening are checked by
    // themselves.
    if (check.needs >= Needs::loaded) checker.plugin();
    if (check.needs >= Needs::opened) checker.instance();
    if (check.needs >= Needs::engine) checker.engine();
    try {
      check.run(checker);
    } catch (const Error& error) {
      // Ours, such as a sample that cannot be read; what a plugin throws ends this child.
      checker.give_up(error.what());
    }
    const std::string end = "D" + std::to_string(checker.subjects()) + "\n";
    return write(child_result_descriptor, end.data(), end.size()) < 0 ? 1 : 0;
  }
  return 2;
}

// What the lines of a child say.
struct Said {
  std::vector<Finding> findings;
  std::vector<std::string> notes;
  std::string prelude, subject, given_up;
  std::filesystem::path reproducer;
  bool in_prelude = true, done = false;
  uint64_t begun = 0, subjects = 0;
};

Said read_lines(const std::string& text) {
  Said said;
  for (const std::string_view line : split(text, '\n')) {
    if (line.size() < 2) continue;
    if (line[0] == 'D') {
      said.done = true;
      said.subjects = std::strtoull(std::string(line.substr(1)).c_str(), nullptr, 10);
      continue;
    }
    const nlohmann::json json = nlohmann::json::parse(line.substr(1), nullptr, false);
    if (!json.is_string()) continue;  // half a line: it died while writing
    std::string value = json.get<std::string>();
    switch (line[0]) {
      case 'P':
        said.prelude = std::move(value);
        said.in_prelude = true;
        break;
      case 'S':
        said.subject = std::move(value);
        said.in_prelude = false;
        said.reproducer.clear();
        ++said.begun;
        break;
      case 'F':
        said.findings.push_back({said.subject, std::move(value), {}});
        break;
      case 'N':
        said.notes.push_back(std::move(value));
        break;
      case 'R':
        said.reproducer = std::move(value);
        break;
      case 'G':
        said.given_up = std::move(value);
        break;
      default:
        break;
    }
  }
  return said;
}

Result run_check(const Check& check, const Request& request, const RunOptions& options) {
  Result result;
  result.check = &check;
  std::vector<uint64_t> ended_at;
  for (;;) {
    const Folder scratch;
    ChildRequest child{program_file(),
                       {child_argument, to_json(request, check, ended_at, scratch.path).dump()},
                       options.limit};
    const ChildEnd end = run_child(child);
    if (end.start_error != 0) {
      result.outcome = Result::Outcome::not_run;
      result.reason = child.program.string() + " cannot be started: " + std::strerror(end.start_error);
      return result;
    }
    Said said = read_lines(end.result);
    result.findings.insert(result.findings.end(), said.findings.begin(), said.findings.end());
    result.notes.insert(result.notes.end(), said.notes.begin(), said.notes.end());
    if (!said.given_up.empty()) {
      result.outcome = Result::Outcome::not_run;
      result.reason = said.given_up;
      return result;
    }
    if (said.done) {
      result.subjects = said.subjects;
      break;
    }
    const std::string ending =
        ending_text(end, said.in_prelude ? said.prelude : std::string("here"), options.limit);
    if (said.begun == 0) {
      result.outcome = Result::Outcome::not_run;
      result.reason = "it " + ending;
      return result;
    }
    ended_at.push_back((ended_at.empty() ? 0 : ended_at.back() + 1) + said.begun - 1);
    result.subjects = ended_at.back() + 1;
    result.findings.push_back({said.subject, ending, keep(said.reproducer, check, request)});
    if (end.timed_out || ended_at.size() == most_endings) {
      result.notes.push_back(
          fmt::format("given up after {} of these; what comes after '{}' was not looked at", ended_at.size(),
                      said.subject));
      break;
    }
  }
  result.outcome = !result.findings.empty() ? Result::Outcome::failed
                   : result.subjects == 0   ? Result::Outcome::nothing_to_do
                                            : Result::Outcome::passed;
  return result;
}

}  // namespace

int check_child_main(int argc, char** argv) {
  if (argc != 3 || std::string_view(argv[1]) != child_argument) return -1;
  // The parent tells a crash by the signal, and nobody wants a core file of it.
  for (const int signal_number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT})
    std::signal(signal_number, SIG_DFL);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  const int code = run_in_child(nlohmann::json::parse(argv[2]));
  // Not exit(): the plugin's static destructors are no part of the question.
  _exit(code);
}

std::vector<Result> run_checks(const std::vector<const Check*>& checks, const Request& request,
                               const RunOptions& options) {
  std::vector<Result> results;
  // Why nothing that needs as much can be looked at: told once, not by fifty children.
  std::string no_loading, no_opening;
  for (const Check* check : checks) {
    const std::string& why = !no_loading.empty() && check->needs >= Needs::loaded   ? no_loading
                             : !no_opening.empty() && check->needs >= Needs::opened ? no_opening
                                                                                    : std::string();
    if (!why.empty()) {
      results.push_back({check, Result::Outcome::not_run, 0, {}, {}, why});
    } else {
      results.push_back(run_check(*check, request, options));
      const Result& last = results.back();
      if (last.outcome == Result::Outcome::not_run && check->level() <= 2) {
        if (check->needs == Needs::loaded) no_loading = last.reason;
        if (check->needs == Needs::opened) no_opening = last.reason;
      }
    }
    if (options.progress) options.progress(results.back());
    if (options.stop_at_first && results.back().outcome == Result::Outcome::failed) break;
  }
  return results;
}

}  // namespace tenon::check
