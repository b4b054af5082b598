// Runs checks, each in a child of its own, and collects what they say.
#pragma once
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "core/check/catalog.hpp"
#include "core/check/request.hpp"

namespace tenon::check {

struct Finding {
  std::string subject, text;
  std::filesystem::path reproducer;  // a file that was kept; may be empty
};

struct Result {
  enum class Outcome { passed, failed, nothing_to_do, not_run };
  const Check* check = nullptr;
  Outcome outcome = Outcome::passed;
  uint64_t subjects = 0;  // that were looked at
  std::vector<Finding> findings;
  std::vector<std::string> notes;
  std::string reason;  // of not_run
};

struct RunOptions {
  std::chrono::milliseconds limit{300000};  // of one child
  bool stop_at_first = false;               // check that fails
  // Called when a check is done; may be empty.
  std::function<void(const Result&)> progress;
};

// The first lines of main(): 0 or more when the program was started as the child of a check, else -1.
int check_child_main(int argc, char** argv);

std::vector<Result> run_checks(const std::vector<const Check*>& checks, const Request& request,
                               const RunOptions& options);

}  // namespace tenon::check
