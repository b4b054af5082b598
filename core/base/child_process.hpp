// A child that does what may crash, hang or exit: started anew (posix_spawn, never a bare fork), given a time
// limit, and ended together with whatever it started.
#pragma once
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace tenon {

// Where a child writes what it found; stdin and stdout are /dev/null.
inline constexpr int child_result_descriptor = 3;

struct ChildRequest {
  std::filesystem::path program;
  std::vector<std::string> arguments;  // after the program's name
  std::chrono::milliseconds limit{10000};
  // Whether it had said all when it did not end in time; NULL: it had not.
  bool (*is_complete)(const std::string& result) = nullptr;
};

struct ChildEnd {
  std::string result;  // all it wrote to descriptor 3
  std::string errors;  // the end of what it wrote to stderr
  int status = 0;      // of waitpid
  bool timed_out = false;
  int start_error = 0;  // errno: it was not started
};

ChildEnd run_child(const ChildRequest& request);

// How it came to its end: "crashes while it is loaded (SIGSEGV)", "does not come back in open within 10000
// ms".
std::string ending_text(const ChildEnd& end, const std::string& stage, std::chrono::milliseconds limit);

std::string last_line(const std::string& text);  // that is not empty

}  // namespace tenon
