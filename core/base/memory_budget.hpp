// How much memory tensors may take: the limit the user set (--memory-limit), and what the machine has.
//
// Counted are the bytes that the host itself allocates for tensors: intermediates, results, packed and folded
// constants, inputs read from files. They are counted for the whole process, since that is what the limit is
// to protect. Mapped files are not counted: the system drops their pages when memory is short.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

struct tn_limits_api;

namespace tenon {

void set_memory_limit(uint64_t bytes);  // 0: none
uint64_t memory_limit();
uint64_t memory_in_use();

// What the system would give this process now, its control group's limit included; 0: not known.
uint64_t available_memory_bytes();

// Throws Error ("... is too large: ...") when so many bytes cannot be had on top of what is in use. Takes
// nothing. `what` is to be allocated at the place `where`.
void require_memory(uint64_t bytes, const std::string& where, const std::string& what);

void give_memory_back(uint64_t bytes) noexcept;

// Bytes counted as in use, given back at the end.
class MemoryShare {
 public:
  MemoryShare() = default;
  // Throws as require_memory does.
  MemoryShare(uint64_t bytes, const std::string& where, const std::string& what);
  MemoryShare(MemoryShare&& other) noexcept : bytes_(std::exchange(other.bytes_, 0)) {}
  MemoryShare& operator=(MemoryShare&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MemoryShare() { give_memory_back(bytes_); }
  // They stay counted; the caller gives them back.
  uint64_t release() { return std::exchange(bytes_, 0); }

 private:
  uint64_t bytes_ = 0;
};

// 64-byte aligned bytes that count as in use as long as somebody holds them. Throws as require_memory does,
// std::bad_alloc.
std::shared_ptr<const void> counted_bytes(uint64_t bytes, const std::string& where, const std::string& what);

const tn_limits_api* limits_api();  // tenon.limits/1: require_memory for plugins

// "500MB", "2GiB", "1.5 GB", "4096" (bytes); nothing when it is no size, or none that fits in 63 bits.
std::optional<uint64_t> parse_memory_size(std::string_view text);

}  // namespace tenon
