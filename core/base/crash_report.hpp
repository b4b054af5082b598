// What a thread was doing in somebody's plugin when the process crashed: one line on stderr before the system
// does what it does with a crash. A breadcrumb costs a few stores, and is read only by the signal handler.
#pragma once
#include <string_view>

namespace tenon {

using CrashWriter = void (*)(std::string_view text);

struct Breadcrumb {
  // Writes "kernel x of plugin y, ..."; runs in the signal handler: reads memory, and nothing else. NULL: no
  // crumb.
  void (*tell)(const void* subject, CrashWriter write) = nullptr;
  const void* subject = nullptr;
};

// This thread does that until the end of the scope.
class BreadcrumbScope {
 public:
  BreadcrumbScope(void (*tell)(const void*, CrashWriter), const void* subject) noexcept : before_(here) {
    here = {tell, subject};
  }
  explicit BreadcrumbScope(const Breadcrumb& crumb) noexcept : before_(here) { here = crumb; }
  ~BreadcrumbScope() { here = before_; }
  BreadcrumbScope(const BreadcrumbScope&) = delete;
  BreadcrumbScope& operator=(const BreadcrumbScope&) = delete;
  static Breadcrumb current() noexcept { return here; }

 private:
  static constinit thread_local Breadcrumb here;
  Breadcrumb before_;
};

// A cold call into a plugin, such as "pass 'fold'". The texts live as long as the scope.
class PluginCallScope {
 public:
  PluginCallScope(std::string_view what, std::string_view name, std::string_view plugin) noexcept
      : what_(what), name_(name), plugin_(plugin), scope_(&tell, this) {}

 private:
  static void tell(const void* subject, CrashWriter write);
  std::string_view what_, name_, plugin_;
  BreadcrumbScope scope_;
};

// Crashes from here on are told, then handled as before (a debugger, a core file, a sanitizer's report). Once
// a process. [main]
void install_crash_reports();

// A stack of this thread's own for the handler, so that a stack that has run over is told too.
class CrashStack {
 public:
  CrashStack();
  ~CrashStack();
  CrashStack(const CrashStack&) = delete;
  CrashStack& operator=(const CrashStack&) = delete;

 private:
  void* memory_ = nullptr;
};

std::string_view signal_name(int signal);  // "SIGSEGV"; "a signal" for those that are no crash

}  // namespace tenon
