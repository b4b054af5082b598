#include "core/base/child_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>

extern char** environ;

namespace tenon {

namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t max_result_bytes = 16 << 20;
constexpr size_t kept_error_bytes = 8 << 10;

struct Pipe {
  int read_end = -1;
  int write_end = -1;
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) == 0) {
      read_end = ends[0];
      write_end = ends[1];
    }
  }
  ~Pipe() {
    close_end(read_end);
    close_end(write_end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  static void close_end(int& end) {
    if (end >= 0) close(end);
    end = -1;
  }
};

// Reads until both pipes are closed, or the time is over.
void collect(Pipe& result, Pipe& errors, Clock::time_point deadline, ChildEnd& end) {
  std::array<char, 16384> buffer;
  while (result.read_end >= 0 || errors.read_end >= 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0 || end.result.size() > max_result_bytes) {
      end.timed_out = true;
      return;
    }
    pollfd watched[2] = {{result.read_end, POLLIN, 0}, {errors.read_end, POLLIN, 0}};
    if (poll(watched, 2, static_cast<int>(left)) < 0 && errno != EINTR) return;
    for (int i = 0; i < 2; ++i) {
      if (watched[i].fd < 0 || watched[i].revents == 0) continue;
      const ssize_t count = read(watched[i].fd, buffer.data(), buffer.size());
      if (count < 0 && errno == EINTR) continue;
      int& own_end = i == 0 ? result.read_end : errors.read_end;
      if (count <= 0) {
        Pipe::close_end(own_end);
        // A grandchild may hold stderr open; the result's end is the child's own.
        if (i == 0 && errors.read_end >= 0)
          deadline = std::min(deadline, Clock::now() + std::chrono::milliseconds(200));
        continue;
      }
      std::string& text = i == 0 ? end.result : end.errors;
      text.append(buffer.data(), static_cast<size_t>(count));
      if (i == 1 && text.size() > 2 * kept_error_bytes) text.erase(0, text.size() - kept_error_bytes);
    }
  }
}

}  // namespace

ChildEnd run_child(const ChildRequest& request) {
  Pipe result;
  Pipe errors;
  std::vector<char*> arguments = {const_cast<char*>("tenon")};
  for (const std::string& argument : request.arguments)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, errors.write_end, 2);
  posix_spawn_file_actions_adddup2(&actions, result.write_end, child_result_descriptor);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  // A group of its own, so that whatever the plugin starts ends with it.
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  pid_t child = -1;
  const int error =
      result.write_end < 0 || errors.write_end < 0
          ? EMFILE
          : posix_spawn(&child, request.program.c_str(), &actions, &attributes, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  ChildEnd end;
  end.start_error = error;
  if (error != 0) return end;
  Pipe::close_end(result.write_end);
  Pipe::close_end(errors.write_end);

  const Clock::time_point deadline = Clock::now() + request.limit;
  collect(result, errors, deadline, end);
  const bool has_result = request.is_complete != nullptr && request.is_complete(end.result);
  if (end.timed_out && has_result) end.timed_out = false;
  // Both pipes closed: it is about to end, unless the plugin closed them and goes on. It is left unreaped
  // until its group was ended, so that its number cannot mean anything else.
  while (!end.timed_out) {
    siginfo_t info{};
    if (waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        info.si_pid == child)
      break;
    if (Clock::now() >= deadline) {
      end.timed_out = !has_result;
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  kill(-child, SIGKILL);
  while (waitpid(child, &end.status, 0) < 0 && errno == EINTR) {
  }
  return end;
}

// "terminate called after ...\n  what():  no licence" -> "no licence"
static std::string what_of(const std::string& errors) {
  constexpr std::string_view mark = "what():";
  const size_t found = errors.rfind(mark);
  if (found == std::string::npos) return {};
  const size_t begin = errors.find_first_not_of(' ', found + mark.size());
  return begin == std::string::npos ? std::string() : errors.substr(begin, errors.find('\n', begin) - begin);
}

std::string last_line(const std::string& text) {
  const size_t last = text.find_last_not_of(" \n\t");
  if (last == std::string::npos) return {};
  const size_t begin = text.rfind('\n', last);
  return text.substr(begin == std::string::npos ? 0 : begin + 1,
                     last - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

std::string ending_text(const ChildEnd& end, const std::string& stage, std::chrono::milliseconds limit) {
  if (end.timed_out)
    return "does not come back " + stage + " within " + std::to_string(limit.count()) + " ms";
  if (const std::string what = what_of(end.errors); !what.empty())
    return "throws a C++ exception " + stage + ": " + what;
  const std::string last = last_line(end.errors);
  if (WIFSIGNALED(end.status)) {
    const char* name = sigabbrev_np(WTERMSIG(end.status));
    std::string text = std::string("crashes ") + stage + " (SIG" + (name == nullptr ? "?" : name) + ")";
    if (WTERMSIG(end.status) == SIGABRT && !last.empty()) text += ": " + last;
    return text;
  }
  return "ends the program " + stage + " (exit status " + std::to_string(WEXITSTATUS(end.status)) + ")" +
         (last.empty() ? "" : ": " + last);
}

}  // namespace tenon
