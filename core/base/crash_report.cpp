#include "core/base/crash_report.hpp"

#include <sys/mman.h>
#include <unistd.h>
#include <csignal>
#include <cstddef>
#include <iterator>

namespace tenon {

constinit thread_local Breadcrumb BreadcrumbScope::here;

namespace {

constexpr int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr size_t stack_bytes = 64 << 10;
struct sigaction before[std::size(crashes)];

void to_stderr(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

void on_crash(int signal, siginfo_t* info, void*) {
  for (size_t i = 0; i < std::size(crashes); ++i) {
    if (crashes[i] == signal) ::sigaction(signal, &before[i], nullptr);
  }
  const Breadcrumb crumb = BreadcrumbScope::current();
  if (crumb.tell != nullptr) {
    to_stderr("tenon: error: crashed with ");
    to_stderr(signal_name(signal));
    to_stderr(" in ");
    crumb.tell(crumb.subject, &to_stderr);
    to_stderr("\n");
  }
  // The instruction that failed runs again, under the former handler; a signal that was sent does not come
  // again by itself.
  if (info == nullptr || info->si_code <= 0) ::raise(signal);
}

}  // namespace

std::string_view signal_name(int signal) {
  switch (signal) {
    case SIGSEGV:
      return "SIGSEGV";
    case SIGBUS:
      return "SIGBUS";
    case SIGFPE:
      return "SIGFPE";
    case SIGILL:
      return "SIGILL";
    case SIGABRT:
      return "SIGABRT";
    case SIGKILL:
      return "SIGKILL";
    default:
      return "a signal";
  }
}

void PluginCallScope::tell(const void* subject, CrashWriter write) {
  const auto* call = static_cast<const PluginCallScope*>(subject);
  write(call->what_);
  write(" '");
  write(call->name_);
  write("' of plugin ");
  write(call->plugin_);
}

void install_crash_reports() {
  static bool installed = false;
  if (installed) return;
  installed = true;
  static CrashStack stack;
  for (size_t i = 0; i < std::size(crashes); ++i) {
    struct sigaction action {};
    action.sa_sigaction = &on_crash;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    ::sigaction(crashes[i], &action, &before[i]);
  }
}

CrashStack::CrashStack() {
  stack_t now{};
  if (::sigaltstack(nullptr, &now) == 0 && (now.ss_flags & SS_DISABLE) == 0)
    return;  // somebody else's: a sanitizer's
  memory_ = ::mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory_ == MAP_FAILED) {
    memory_ = nullptr;
    return;
  }
  stack_t stack{};
  stack.ss_sp = memory_;
  stack.ss_size = stack_bytes;
  ::sigaltstack(&stack, nullptr);
}

CrashStack::~CrashStack() {
  if (memory_ == nullptr) return;
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  ::sigaltstack(&none, nullptr);
  ::munmap(memory_, stack_bytes);
}

}  // namespace tenon
