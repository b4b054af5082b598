#include "core/runtime/run_guard.hpp"

#include <cstring>

#include "core/base/text.hpp"
#include "core/graph/infer.hpp"

namespace tenon {
namespace {
constexpr uint8_t canary = 0xa5;
uint64_t end_of(const GuardedBuffer& buffer) { return (buffer.offset + buffer.bytes + 63) / 64 * 64 + 64; }
}  // namespace

void GuardWords::before(uint32_t step) {
  for (const GuardedBuffer& buffer : segment_.guarded) {
    if (buffer.first_step != step) continue;
    const uint64_t end = buffer.offset + buffer.bytes;
    std::memset(base_ + end, canary, end_of(buffer) - end);
  }
}

std::string GuardWords::after(uint32_t step, const Graph& graph) const {
  for (const GuardedBuffer& buffer : segment_.guarded) {
    if (step < buffer.first_step || step > buffer.last_step) continue;
    for (uint64_t i = buffer.offset + buffer.bytes; i < end_of(buffer); ++i) {
      if (base_[i] == canary) continue;
      return fmt::format(
          "wrote outside its memory: byte {} behind the {} bytes of value {} is damaged; its plugin is at "
          "fault",
          i - buffer.offset - buffer.bytes, buffer.bytes, value_place(graph, buffer.value));
    }
  }
  return {};
}

}  // namespace tenon
