// A hash table from names to values for graphs of a million names: one array of entries, one of slots.
#pragma once
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon::onnx {

/// Names are borrowed. Pointers handed out are valid until the next emplace.
template <class Value>
class NameMap {
 public:
  void reserve(size_t count) {
    entries_.reserve(count);
    size_t slots = 16;
    while (slots < 2 * count) slots *= 2;
    if (slots > slots_.size()) rebuild(slots);
  }
  Value* find(std::string_view name) {
    if (slots_.empty()) return nullptr;
    const uint64_t hash = std::hash<std::string_view>()(name);
    for (size_t at = hash & mask_;; at = (at + 1) & mask_) {
      const uint64_t slot = slots_[at];
      if (slot == 0) return nullptr;
      if (slot >> 32 == hash >> 32 && entries_[index_of(slot)].first == name)
        return &entries_[index_of(slot)].second;
    }
  }
  /// The value of the name and true; the one that is there already and false.
  std::pair<Value*, bool> emplace(std::string_view name, Value value) {
    if (2 * (entries_.size() + 1) > slots_.size()) rebuild(slots_.empty() ? 16 : 2 * slots_.size());
    const uint64_t hash = std::hash<std::string_view>()(name);
    size_t at = hash & mask_;
    for (; slots_[at] != 0; at = (at + 1) & mask_) {
      const uint64_t slot = slots_[at];
      if (slot >> 32 == hash >> 32 && entries_[index_of(slot)].first == name)
        return {&entries_[index_of(slot)].second, false};
    }
    entries_.emplace_back(name, std::move(value));
    slots_[at] = (hash & 0xffffffff00000000u) | entries_.size();
    return {&entries_.back().second, true};
  }

 private:
  static size_t index_of(uint64_t slot) { return (slot & 0xffffffffu) - 1; }
  void rebuild(size_t count) {
    slots_.assign(count, 0);
    mask_ = count - 1;
    for (size_t i = 0; i < entries_.size(); ++i) {
      const uint64_t hash = std::hash<std::string_view>()(entries_[i].first);
      size_t at = hash & mask_;
      while (slots_[at] != 0) at = (at + 1) & mask_;
      slots_[at] = (hash & 0xffffffff00000000u) | (i + 1);
    }
  }
  std::vector<std::pair<std::string_view, Value>> entries_;
  std::vector<uint64_t> slots_;  // upper half: the hash's; lower half: 1 + number of the entry; 0: free
  size_t mask_ = 0;
};

}  // namespace tenon::onnx
