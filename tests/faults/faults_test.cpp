// The program with a plugin whose kernels fail in every way.
#include <sys/wait.h>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "test_paths.hpp"

using namespace tenon;

namespace {

struct Said {
  int code = -1;
  std::string text;  // stdout and stderr
  bool says(const std::string& part) const { return text.find(part) != std::string::npos; }
};

Said run(const std::string& op, const std::string& options) {
  const std::string path = test::scratch_dir() + "/" + op + ".graph";
  std::ofstream(path) << "graph \"faults\" {\n  opset \"\" 22\n  opset \"test\" 1\n  input %x: float32[4,8]\n"
                         "  %a = Abs(%x)\n  %b = test::"
                      << op << "(%a) name \"middle\"\n  %y = Neg(%b)\n  output %y as \"y\"\n}\n";
  const std::string command = "TENON_CACHE_DIR=" + test::scratch_dir() + "/cache " + test::build_dir() +
                              "/bin/tenon run " + path + " --random --plugin " + test::build_dir() +
                              "/tests/faults/libfaulty.so " + options + " 2>&1";
  Said said;
  FILE* pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  char buffer[4096];
  while (const size_t n = std::fread(buffer, 1, sizeof buffer, pipe)) said.text.append(buffer, n);
  const int status = ::pclose(pipe);
  said.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;  // the shell says 128 + n of a signal
  return said;
}

}  // namespace

TEST_CASE("a kernel that returns an error: plugin, node, kernel and source") {
  for (const char* options : {"", "--isolate faulty"}) {
    const Said said = run("Fails", options);
    INFO(said.text);
    CHECK(said.code == 1);
    CHECK(said.says("node 'middle' (test::Fails), kernel test.fails/1 of plugin faulty"));
    CHECK(said.says("failed with 7 and said no reason"));
  }
}

TEST_CASE("a kernel that crashes is named before the process ends") {
  for (const char* threads : {"--threads 1", "--threads 2"}) {
    const Said said = run("Crashes", threads);
    INFO(said.text);
    CHECK(said.code != 0);  // of the signal; a sanitizer that reports it ends otherwise
    CHECK(said.says(
        "tenon: error: crashed with SIGSEGV in node 'middle' (test::Crashes), kernel test.crashes/1 of "
        "plugin faulty; --isolate faulty makes a crash of its kernels an error of the run"));
  }
  CHECK(run("Aborts", "").says("crashed with SIGABRT in node 'middle' (test::Aborts)"));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("a stack that runs over is told as well") {
  CHECK(run("Overflows", "").says("crashed with SIGSEGV in node 'middle' (test::Overflows)"));
}
#endif

TEST_CASE("isolated, a crash is an error of the run") {
  const Said said = run("Crashes", "--isolate faulty");
  INFO(said.text);
  CHECK(said.code == 1);
  CHECK(
      said.says("node 'middle' (test::Crashes), kernel test.crashes/1 of plugin faulty: crashed with SIGSEGV "
                "in its own "
                "process; report it to the plugin's vendor, or leave the kernel out: --set "
                "'kernels.deny=[\"test.crashes/1\"]'"));
  CHECK(run("Aborts", "--isolate test.faulty").says("crashed with SIGABRT in its own process"));
  const Said left = run("Exits", "--isolate faulty");
  CHECK(left.code == 1);
  CHECK(left.says("ended its own process (status 3) without results"));
}

TEST_CASE("isolated, what works gives the same results") {
  for (const char* op : {"Good", "Picks"}) {
    const std::string plain = test::scratch_dir() + "/" + op + "-plain.npy",
                      alone = test::scratch_dir() + "/" + op + "-alone.npy";
    REQUIRE(run(op, "-q --outputs " + plain).code == 0);
    const Said said = run(op, "-q --isolate faulty --outputs " + alone);
    INFO(said.text);
    REQUIRE(said.code == 0);
    std::ifstream a(plain, std::ios::binary), b(alone, std::ios::binary);
    const std::string first{std::istreambuf_iterator<char>(a), {}},
        second{std::istreambuf_iterator<char>(b), {}};
    CHECK(first.size() > 128);
    CHECK(first == second);
  }
}

TEST_CASE("whom to isolate must be loaded") {
  const Said said = run("Good", "--isolate faultz");
  CHECK(said.code == 2);
  CHECK(said.says("no plugin 'faultz' is loaded; did you mean 'faulty'?"));
}
