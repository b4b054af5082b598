// `tenon optimize` writes the same bytes from run to run: each model goes through the program several times,
// each time in another process under other circumstances, and all that is written is compared byte by byte.
#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "test_paths.hpp"

namespace fs = std::filesystem;

namespace {

struct Circumstances {
  const char* what;
  std::vector<std::string> arguments;
  bool fixed_addresses;
  std::vector<std::string> environment;
};

/// Threads, where the stack and the heap lie, what fresh memory holds, how large the environment is, in which
/// order plugins are named.
std::vector<Circumstances> circumstances() {
  return {
      {"one thread", {"--threads", "1"}, false, {}},
      {"fixed addresses", {"--threads", "1"}, true, {}},
      {"two threads, memory filled", {"--threads", "2"}, false, {"MALLOC_PERTURB_=165"}},
      {"seven threads, large environment",
       {"--threads", "7"},
       true,
       {"TENON_TEST_FILLER=" + std::string(50000, 'x'), "MALLOC_PERTURB_=90"}},
      {"plugins the other way round, other malloc",
       {"--threads", "3", "--set",
        R"(plugins=["tensors", {"name": "media", "required": false}, {"name": "cpu", "required": false}, "memory", "elementwise", )"
        R"("rules", "fusion", "ops", "onnx"])"},
       false,
       {"MALLOC_TOP_PAD_=7340032", "MALLOC_MMAP_THRESHOLD_=4096"}},
  };
}

/// Runs the program to its end; its standard output goes to a file. Returns its exit status.
int run(const std::string& program, std::vector<std::string> arguments, const std::string& output,
        bool fixed_addresses, std::vector<std::string> environment) {
  environment.push_back("TENON_CACHE_DIR=" + tenon::test::scratch_dir() + "/cache");
  environment.push_back("TENON_SCAN_TIMEOUT_MS=120000");
  for (const char* kept : {"PATH", "ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"})
    if (const char* value = std::getenv(kept)) environment.push_back(std::string(kept) + "=" + value);
  arguments.insert(arguments.begin(), program);
  std::vector<char*> argv, envp;
  for (std::string& text : arguments) argv.push_back(text.data());
  for (std::string& text : environment) envp.push_back(text.data());
  argv.push_back(nullptr);
  envp.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    const int file = ::open(output.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
    if (file < 0 || ::dup2(file, STDOUT_FILENO) < 0) ::_exit(126);
    // Where a sandbox forbids it, the addresses stay random: one circumstance less, and no failure.
    if (fixed_addresses)
      ::personality(static_cast<unsigned long>(::personality(0xffffffff)) | ADDR_NO_RANDOMIZE);
    ::execve(program.c_str(), argv.data(), envp.data());
    ::_exit(127);
  }
  REQUIRE(child > 0);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Where two differ, for the message: bytes of a model are of no use in it.
std::string difference(const std::string& a, const std::string& b) {
  const auto at =
      std::mismatch(a.begin(), a.begin() + static_cast<long>(std::min(a.size(), b.size())), b.begin());
  const auto offset = static_cast<size_t>(at.first - a.begin());
  if (offset == a.size() && offset == b.size()) return {};
  const size_t from = offset < 60 ? 0 : offset - 60;
  return "they differ at byte " + std::to_string(offset) + " of " + std::to_string(a.size()) + " and " +
         std::to_string(b.size()) + ": ..." + a.substr(from, 120) + "... and ..." + b.substr(from, 120) +
         "...";
}

struct Written {
  int status = 0, text_status = 0;
  std::string model, text;
};

Written optimize(const fs::path& model, const Circumstances& now, const fs::path& folder) {
  const std::string program = tenon::test::build_dir() + "/bin/tenon";
  std::vector<std::string> arguments{"optimize", model.string()};
  arguments.insert(arguments.end(), now.arguments.begin(), now.arguments.end());
  Written written;
  written.text_status =
      run(program, arguments, (folder / "out.txt").string(), now.fixed_addresses, now.environment);
  written.text = bytes_of(folder / "out.txt");
  arguments.insert(arguments.end(), {"-q", "-o", (folder / "out.onnx").string()});
  written.status =
      run(program, arguments, (folder / "said.txt").string(), now.fixed_addresses, now.environment);
  written.model = bytes_of(folder / "out.onnx");
  return written;
}

void check_same(const fs::path& model) {
  const fs::path folder = tenon::test::scratch_dir();
  const auto all = circumstances();
  const Written first = optimize(model, all[0], folder);
  INFO(model.string());
  REQUIRE(first.status == 0);
  REQUIRE(first.text_status == 0);
  REQUIRE_FALSE(first.model.empty());
  for (size_t i = 1; i < all.size(); ++i) {
    INFO(all[i].what);
    const Written again = optimize(model, all[i], folder);
    CHECK(again.status == 0);
    CHECK(again.text_status == 0);
    CHECK(difference(first.text, again.text) == "");
    CHECK(difference(first.model, again.model) == "");
  }
}

}  // namespace

TEST_CASE("The model that comes with the program is optimised to the same bytes whatever the circumstances") {
  const fs::path models = tenon::test::source_dir() + "/models";
  size_t count = 0;
  for (const auto& entry : fs::recursive_directory_iterator(models)) {
    if (entry.path().extension() != ".onnx") continue;
    ++count;
    check_same(entry.path());
  }
  CHECK(count > 0);
}

TEST_CASE("Random graphs are optimised to the same bytes whatever the circumstances") {
  const fs::path folder = fs::path(tenon::test::scratch_dir()) / "random";
  fs::create_directories(folder);
  REQUIRE(run(tenon::test::build_dir() + "/tests/bin/random_graphs",
              {"--seed", "20261130", "--count", "40", "--written", "0", "--dump", folder.string(), "--out",
               folder.string()},
              (folder / "said.txt").string(), false, {}) == 0);
  std::vector<fs::path> models;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".onnx") models.push_back(entry.path());
  std::sort(models.begin(), models.end());
  REQUIRE(models.size() >= 10);
  for (size_t i = 0; i < models.size() && i < 24; ++i) check_same(models[i]);
}
