#include "core/runtime/packed_constants.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <unordered_map>

namespace tenon {
namespace {

struct Entry {
  std::mutex filling;
  std::weak_ptr<const PackedBlob> blob;
};

struct Cache {
  std::mutex mutex;
  std::unordered_map<std::string, std::shared_ptr<Entry>> entries;
  size_t sweep_at = 4096;
};

Cache& cache() {
  static auto* instance = new Cache;  // blobs may be released while the program ends
  return *instance;
}

// Folds a 128-bit product, so that every input bit reaches every output bit.
uint64_t mix(uint64_t x, uint64_t y) {
  const unsigned __int128 product = static_cast<unsigned __int128>(x) * y;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

constexpr uint64_t odd_a = 0x9e3779b97f4a7c15u, odd_b = 0xd1b54a32d192ed03u, odd_c = 0x8cb92ba72f3d8dd7u;

void absorb(ContentIdentity& state, uint64_t x, uint64_t y) {
  state.a = mix(state.a ^ x, odd_a ^ y) + odd_c;
  state.b = mix(state.b + y, odd_b ^ x) ^ (state.a >> 17);
}

}  // namespace

ContentIdentity content_identity(const tn_tensor& tensor) {
  ContentIdentity state{odd_b ^ tensor.dtype, odd_a + static_cast<uint64_t>(tensor.rank)};
  for (int32_t d = 0; d < tensor.rank; ++d) absorb(state, static_cast<uint64_t>(tensor.dims[d]), odd_c);
  const auto* bytes = static_cast<const uint8_t*>(tensor.data);
  uint64_t left = tensor.bytes;
  // Four lanes that do not wait for one another: weights are hashed at memory speed.
  uint64_t lanes[4] = {state.a, state.b, odd_b, odd_c};
  for (; left >= 64; bytes += 64, left -= 64) {
    uint64_t words[8];
    std::memcpy(words, bytes, 64);
    for (int lane = 0; lane < 4; ++lane)
      lanes[lane] = mix(lanes[lane] ^ words[2 * lane], odd_a + words[2 * lane + 1]) + odd_b;
  }
  absorb(state, lanes[0], lanes[1]);
  absorb(state, lanes[2], lanes[3]);
  for (; left >= 16; bytes += 16, left -= 16) {
    uint64_t words[2];
    std::memcpy(words, bytes, 16);
    absorb(state, words[0], words[1]);
  }
  if (left != 0) {
    uint64_t words[2] = {0, 0};
    std::memcpy(words, bytes, left);
    absorb(state, words[0], words[1]);
  }
  absorb(state, tensor.bytes, odd_a);
  return state;
}

tn_status packed_constant(const ContentIdentity& identity, std::string_view layout_key, uint64_t bytes,
                          const std::string& where, const std::function<tn_status(void* dst)>& fill,
                          std::shared_ptr<const PackedBlob>* blob) {
  std::string key(sizeof identity + sizeof bytes, '\0');
  std::memcpy(key.data(), &identity, sizeof identity);
  std::memcpy(key.data() + sizeof identity, &bytes, sizeof bytes);
  key += layout_key;
  std::shared_ptr<Entry> entry;
  {
    Cache& all = cache();
    const std::lock_guard<std::mutex> lock(all.mutex);
    // Keys of blobs that are gone would pile up in a program that opens many models. Each sweep waits until
    // there are twice as many as the last one left, so that a model of very many weights pays for each of
    // them once.
    if (all.entries.size() > all.sweep_at) {
      std::erase_if(all.entries, [](const auto& item) {
        return item.second.use_count() == 1 && item.second->blob.expired();
      });
      all.sweep_at = std::max<size_t>(4096, 2 * all.entries.size());
    }
    std::shared_ptr<Entry>& place = all.entries[key];
    if (place == nullptr) place = std::make_shared<Entry>();
    entry = place;
  }
  const std::lock_guard<std::mutex> lock(entry->filling);
  *blob = entry->blob.lock();
  if (*blob != nullptr) return TN_OK;
  auto made = std::make_shared<PackedBlob>();
  made->memory = map_memory(bytes, where, "packed constant");
  made->bytes = bytes;
  const tn_status status = fill(made->memory.base);
  if (status != TN_OK) return status;
  entry->blob = made;
  *blob = std::move(made);
  return TN_OK;
}

}  // namespace tenon
