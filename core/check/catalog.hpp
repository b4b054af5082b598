// The checks of `tenon plugins check`: a number that stays, what it looks at, what happens to those who fail
// it. docs/plugin-checks.md is written from this table.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::check {

class Checker;

// What has to work before a check can look at anything.
enum class Needs { file, loaded, opened, engine };

struct Check {
  const char* id;           // "4.7": level and number; never given to another check
  const char* title;        // what holds when it passes
  const char* consequence;  // of failing
  const char* host;         // what a host does about it by itself: "refuses the plugin", "nothing"
  Needs needs;
  void (*run)(Checker& checker);

  int level() const { return id[0] - '0'; }
};

// In the order of their numbers.
std::span<const Check> all_checks();
inline constexpr int level_count = 7;
std::string_view level_name(int level);

// The checks that `words` name: "4.7", or "4" for a whole level. An unknown word comes back in `unknown`.
std::vector<const Check*> select_checks(const std::vector<std::string>& words, int highest_level,
                                        std::vector<std::string>& unknown);

}  // namespace tenon::check
