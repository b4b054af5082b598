// Level 2: what a plugin leaves behind in the process after open and close.
#include <unistd.h>

#include <sys/stat.h>
#include <cfenv>
#include <clocale>
#include <csignal>
#include <filesystem>
#include <set>

#include "core/base/text.hpp"
#include "core/check/checker.hpp"
#include "core/check/levels.hpp"
#include "core/check/process_state.hpp"
#include "core/runtime/cpu_features.hpp"

extern char** environ;

namespace tenon::check {

namespace {

namespace fs = std::filesystem;

// Twice: what is made once, such as a table of the library's, is there after the first.
void open_and_close_twice(Checker& checker) {
  const tn_plugin& plugin = checker.plugin();
  for (int i = 0; i < 2; ++i) {
    CompleteHost host;
    Diagnostics said;
    void* instance = nullptr;
    if (plugin.open(host.host.make_plugin_host(string(plugin.name), "{}"), said.abi(), &instance) == TN_OK)
      plugin.close(instance);
  }
}

std::string numbered_signal(int number) {
  const char* const name = sigabbrev_np(number);
  return name == nullptr ? "signal " + std::to_string(number) : std::string("SIG") + name;
}

const void* handler_of(int number) {
  struct sigaction action {};
  if (sigaction(number, nullptr, &action) != 0) return nullptr;
  return reinterpret_cast<const void*>(action.sa_handler);
}

std::string environment() {
  std::string all;
  for (char** entry = environ; *entry != nullptr; ++entry) all += std::string(*entry) + '\n';
  return all;
}

}  // namespace

void check_leaves_no_threads(Checker& checker) {
  checker.plugin();
  const CompleteHost warm;  // threads of the host's own
  const size_t before = thread_count();
  if (!checker.begin("threads after open and close")) return;
  open_and_close_twice(checker);
  // One that was told to end and joined is gone; one that still ends is not waited for by its plugin.
  const size_t after = thread_count();
  if (after > before)
    checker.finding(
        fmt::format("{} threads are left; join them in close, and use the host's pool", after - before));
}

void check_leaves_no_files(Checker& checker) {
  checker.plugin();
  const std::set<std::string> before = open_files();
  if (!checker.begin("open files after open and close")) return;
  open_and_close_twice(checker);
  for (const std::string& file : open_files())
    if (before.count(file) == 0) checker.finding("descriptor " + file + " is left open; close it in close");
  const std::set<std::string> after = open_files();
  for (const std::string& file : before)
    if (after.count(file) == 0) checker.finding("descriptor " + file + " of the host was closed");
}

void check_leaves_signals(Checker& checker) {
  if (!checker.begin("signal handlers after loading, open and close")) return;
  sigset_t mask_before, mask_after;
  sigprocmask(SIG_BLOCK, nullptr, &mask_before);
  std::vector<const void*> before;
  for (int number = 1; number < SIGRTMIN; ++number) before.push_back(handler_of(number));
  checker.plugin();
  open_and_close_twice(checker);
  sigprocmask(SIG_BLOCK, nullptr, &mask_after);
  for (int number = 1; number < SIGRTMIN; ++number) {
    if (handler_of(number) != before[static_cast<size_t>(number) - 1])
      checker.finding("the handler of " + numbered_signal(number) +
                      " is another; handlers belong to the program");
    if (sigismember(&mask_before, number) != sigismember(&mask_after, number))
      checker.finding("the mask of signals has another " + numbered_signal(number));
  }
}

void check_leaves_floating_point(Checker& checker) {
  if (!checker.begin("rounding and flushing after loading, open and close")) return;
  const int rounding = fegetround();
  // The upper bits tell what happened, not how it is computed.
  constexpr uint64_t exception_flags = 0x3f;
  const uint64_t control = fp_control() & ~exception_flags;
  checker.plugin();
  open_and_close_twice(checker);
  if (fegetround() != rounding)
    checker.finding("the rounding mode is another; restore it (fesetround)");
  else if ((fp_control() & ~exception_flags) != control)
    checker.finding(
        "the floating-point control word is another (denormals, exceptions); do not link with -ffast-math, "
        "and restore it");
}

void check_leaves_process_state(Checker& checker) {
  if (!checker.begin("locale, working folder, umask and environment after loading, open and close")) return;
  const std::string locale = std::setlocale(LC_ALL, nullptr);
  const fs::path folder = fs::current_path();
  const mode_t mask = umask(022);
  umask(mask);
  const std::string variables = environment();
  checker.plugin();
  open_and_close_twice(checker);
  if (const std::string now = std::setlocale(LC_ALL, nullptr); now != locale)
    checker.finding(fmt::format("the locale is {}, was {}; texts of numbers change with it", quoted(now),
                                quoted(locale)));
  std::error_code error;
  if (const fs::path now = fs::current_path(error); now != folder)
    checker.finding(fmt::format("the working folder is {}, was {}", now.string(), folder.string()));
  const mode_t now = umask(mask);
  if (now != mask) checker.finding(fmt::format("the umask is {:o}, was {:o}", now, mask));
  if (environment() != variables)
    checker.finding("the environment is another; setenv is not safe beside other threads");
}

// Memory in use must not grow with every open and close. Counted by the allocator, so the same on every
// machine.
void check_leaks_nothing(Checker& checker) {
  const tn_plugin& plugin = checker.plugin();
  CompleteHost& host = checker.host();
  const tn_host* const handle = host.host.make_plugin_host(string(plugin.name), "{}");
  if (!checker.begin("memory in use after 50 times open and close")) return;
  const auto repeat = [&](int times) {
    for (int i = 0; i < times; ++i) {
      Diagnostics said;
      void* instance = nullptr;
      if (plugin.open(handle, said.abi(), &instance) == TN_OK) plugin.close(instance);
    }
    return memory_in_use();
  };
  repeat(20);
  const size_t before = repeat(1), after = repeat(50);
  if (after > before + 50 * 16)
    checker.finding(
        fmt::format("{} bytes more each time; free in close what open made", (after - before) / 50));
}

}  // namespace tenon::check
