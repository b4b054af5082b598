#include "core/base/memory_budget.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "core/base/diagnostics.hpp"
#include "core/base/text.hpp"

namespace tenon {
namespace {

// Asking the system what is left costs about 20 us, so only sizes worth it are asked about.
constexpr uint64_t ask_system_above_bytes = uint64_t{64} << 20;

std::atomic<uint64_t> limit_bytes{0};
std::atomic<uint64_t> used_bytes{0};

bool read_number(const char* path, uint64_t* value) {
  std::FILE* file = std::fopen(path, "re");
  if (file == nullptr) return false;
  const bool good = std::fscanf(file, "%" SCNu64, value) == 1;  // "max" reads as nothing
  std::fclose(file);
  return good;
}

[[noreturn]] void over_limit(uint64_t bytes, uint64_t used, uint64_t limit, const std::string& where,
                             const std::string& what) {
  throw Error(exit_job_failed, where,
              fmt::format("{} is too large: {} needed, the memory limit is {} and {} of it are in use; use "
                          "smaller shapes, or raise the limit (--memory-limit, runtime.memory_limit)",
                          what, format_bytes(bytes), format_bytes(limit), format_bytes(used)));
}

void require_of_system(uint64_t bytes, const std::string& where, const std::string& what) {
  if (bytes <= ask_system_above_bytes) return;
  const uint64_t available = available_memory_bytes();
  if (available == 0 || bytes <= available) return;
  throw Error(
      exit_job_failed, where,
      fmt::format(
          "{} is too large: {} needed, {} of memory available; use smaller shapes or a larger machine", what,
          format_bytes(bytes), format_bytes(available)));
}

}  // namespace

void set_memory_limit(uint64_t bytes) { limit_bytes.store(bytes, std::memory_order_relaxed); }
uint64_t memory_limit() { return limit_bytes.load(std::memory_order_relaxed); }
uint64_t memory_in_use() { return used_bytes.load(std::memory_order_relaxed); }

uint64_t available_memory_bytes() {
  uint64_t available = 0;
  if (std::FILE* file = std::fopen("/proc/meminfo", "re")) {
    char line[128];
    while (std::fgets(line, sizeof line, file) != nullptr) {
      uint64_t kilobytes = 0;
      if (std::sscanf(line, "MemAvailable: %" SCNu64 " kB", &kilobytes) == 1) available = kilobytes * 1024;
    }
    std::fclose(file);
  }
  uint64_t limit = 0, used = 0;
  if (read_number("/sys/fs/cgroup/memory.max", &limit) &&
      read_number("/sys/fs/cgroup/memory.current", &used)) {
    const uint64_t left = limit > used ? limit - used : 1;
    available = available == 0 ? left : std::min(available, left);
  }
  return available;
}

void require_memory(uint64_t bytes, const std::string& where, const std::string& what) {
  const uint64_t limit = memory_limit(), used = memory_in_use();
  if (limit != 0 && (bytes > limit || used > limit - bytes)) over_limit(bytes, used, limit, where, what);
  require_of_system(bytes, where, what);
}

MemoryShare::MemoryShare(uint64_t bytes, const std::string& where, const std::string& what) {
  require_of_system(bytes, where, what);
  const uint64_t before = used_bytes.fetch_add(bytes, std::memory_order_relaxed), limit = memory_limit();
  if (limit != 0 && (bytes > limit || before > limit - bytes)) {
    used_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    over_limit(bytes, before, limit, where, what);
  }
  bytes_ = bytes;
}

void give_memory_back(uint64_t bytes) noexcept { used_bytes.fetch_sub(bytes, std::memory_order_relaxed); }

std::shared_ptr<const void> counted_bytes(uint64_t bytes, const std::string& where, const std::string& what) {
  const uint64_t rounded = bytes == 0 ? 64 : (bytes + 63) / 64 * 64;
  MemoryShare share(rounded, where, what);
  void* const data = std::aligned_alloc(64, rounded);
  if (data == nullptr) throw std::bad_alloc();
  share.release();
  return std::shared_ptr<const void>(data, [rounded](const void* p) {
    std::free(const_cast<void*>(p));
    give_memory_back(rounded);
  });
}

std::optional<uint64_t> parse_memory_size(std::string_view text) {
  struct Unit {
    std::string_view name;
    double bytes;
  };
  static constexpr std::array<Unit, 14> units = {{{"", 1},
                                                  {"b", 1},
                                                  {"k", 1e3},
                                                  {"kb", 1e3},
                                                  {"m", 1e6},
                                                  {"mb", 1e6},
                                                  {"g", 1e9},
                                                  {"gb", 1e9},
                                                  {"t", 1e12},
                                                  {"tb", 1e12},
                                                  {"kib", 1024.0},
                                                  {"mib", 1048576.0},
                                                  {"gib", 1073741824.0},
                                                  {"tib", 1099511627776.0}}};
  size_t digits = 0, points = 0;
  while (digits < text.size() && ((text[digits] >= '0' && text[digits] <= '9') || text[digits] == '.'))
    points += text[digits++] == '.';
  if (digits == 0 || points > 1 || digits == points || digits > 24) return std::nullopt;
  const double number = std::strtod(std::string(text.substr(0, digits)).c_str(), nullptr);
  std::string_view unit = text.substr(digits);
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  const std::string word = lower(unit);
  for (const Unit& u : units) {
    const double bytes = std::floor(number * u.bytes);
    if (word == u.name)
      return bytes < 9.2e18 ? std::optional<uint64_t>(static_cast<uint64_t>(bytes)) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace tenon
