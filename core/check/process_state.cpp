#include "core/check/process_state.hpp"

#include <malloc.h>

#include <algorithm>
#include <cstdint>

namespace tenon::check {

namespace fs = std::filesystem;

size_t memory_in_use() {
  const struct mallinfo2 used = mallinfo2();
  return used.uordblks + used.hblkhd;
}

size_t kept_by_each(int turns, const std::function<void(int)>& repeat) {
  repeat(4);
  repeat(1);
  // A leak is the same in every round; caches of libraries within grow as they like, and then no more.
  size_t before = memory_in_use(), least = SIZE_MAX, most = 0;
  for (int round = 0; round < 3; ++round) {
    repeat(turns);
    const size_t after = memory_in_use(), growth = after - std::min(before, after);
    least = std::min(least, growth);
    most = std::max(most, growth);
    before = after;
  }
  const auto each = static_cast<size_t>(turns);
  return least >= each * 16 && most - least <= least / 8 ? least / each : 0;
}

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) names.insert(entry.path().filename());
  return names;
}

std::set<std::string> open_files() {
  std::set<std::string> files;
  for (const std::string& descriptor : names_in("/proc/self/fd")) {
    std::error_code error;
    const std::string target = fs::read_symlink("/proc/self/fd/" + descriptor, error).string();
    if (target.empty() || target.find("/proc/") == 0) continue;  // the one that reads the folder
    files.insert(descriptor + " (" + target + ")");
  }
  return files;
}

size_t thread_count() { return names_in("/proc/self/task").size(); }

}  // namespace tenon::check
