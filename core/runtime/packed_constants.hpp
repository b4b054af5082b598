// Packed forms of constants: made once, shared in the process by all who ask for the same contents and
// layout.
#pragma once
#include <tenon/abi/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/runtime/arena_pool.hpp"

namespace tenon {

struct PackedBlob {
  ArenaBlock memory;
  uint64_t bytes = 0;
  PackedBlob() = default;
  PackedBlob(const PackedBlob&) = delete;
  PackedBlob& operator=(const PackedBlob&) = delete;
  ~PackedBlob() { unmap_memory(memory); }
};

// 128 bits over type, shape and bytes. Two constants with the same one are taken for equal.
struct ContentIdentity {
  uint64_t a = 0, b = 0;
  bool operator==(const ContentIdentity&) const = default;
};
ContentIdentity content_identity(const tn_tensor& tensor);

// The blob for that key, filled by whoever asks first while the others wait. It lives as long as somebody
// holds it. A failure of `fill` is returned and leaves nothing behind; Error "too large" names `where`. [any]
tn_status packed_constant(const ContentIdentity& identity, std::string_view layout_key, uint64_t bytes,
                          const std::string& where, const std::function<tn_status(void* dst)>& fill,
                          std::shared_ptr<const PackedBlob>* blob);

}  // namespace tenon
