// The graph's storage: chunked arrays whose elements stay where they are, an arena, use lists, names.
#pragma once
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tenon/abi/graph.h"

namespace tenon {

// An array that grows without moving its elements. A chunk is raw memory until an element is put there: a
// graph of one node, of which folding makes thousands, touches a page of each array and not all of it.
template <class T, uint32_t ChunkBits = 12>
class ChunkedVector {
 public:
  ChunkedVector() = default;
  ChunkedVector(ChunkedVector&& other) noexcept { swap(other); }
  ChunkedVector& operator=(ChunkedVector&& other) noexcept {
    ChunkedVector taken(std::move(other));
    swap(taken);
    return *this;
  }
  ChunkedVector(const ChunkedVector& other) {
    for (uint32_t i = 0; i < other.size_; ++i) push_back(other[i]);
  }
  ChunkedVector& operator=(const ChunkedVector& other) {
    if (this != &other) *this = ChunkedVector(other);
    return *this;
  }
  ~ChunkedVector() { clear(); }
  uint32_t size() const { return size_; }
  T& operator[](uint32_t i) { return chunks_[i >> ChunkBits][i & mask]; }
  const T& operator[](uint32_t i) const { return chunks_[i >> ChunkBits][i & mask]; }
  T& push_back(T value) {
    if ((size_ >> ChunkBits) == chunks_.size()) {
      if (chunks_.size() == chunks_.capacity()) chunks_.reserve(2 * chunks_.size() + 4);
      chunks_.push_back(static_cast<T*>(::operator new(chunk_bytes, std::align_val_t(alignof(T)))));
    }
    T* const place = ::new (chunks_[size_ >> ChunkBits] + (size_ & mask)) T(std::move(value));
    ++size_;
    return *place;
  }
  void clear() {
    if constexpr (!std::is_trivially_destructible_v<T>) {
      for (uint32_t i = 0; i < size_; ++i) std::destroy_at(&(*this)[i]);
    }
    for (T* const chunk : chunks_) ::operator delete(chunk, std::align_val_t(alignof(T)));
    chunks_.clear();
    size_ = 0;
  }
  void swap(ChunkedVector& other) noexcept {
    chunks_.swap(other.chunks_);
    std::swap(size_, other.size_);
  }
  uint64_t memory_bytes() const { return chunks_.size() * chunk_bytes; }

 private:
  static constexpr uint32_t mask = (1u << ChunkBits) - 1;
  static constexpr size_t chunk_bytes = sizeof(T) << ChunkBits;
  std::vector<T*> chunks_;
  uint32_t size_ = 0;
};

// Bump allocation; everything goes at once. Blocks are shared with copies of the graph, so what is written
// once and never changed (attributes, texts) need not be copied.
class Arena {
 public:
  void* allocate(size_t bytes, size_t alignment);
  template <class T>
  T* allocate_array(size_t count) {
    return static_cast<T*>(allocate(count * sizeof(T), alignof(T)));
  }
  std::string_view copy_text(std::string_view text);
  // Keeps the blocks of `other` alive too; new allocations go to blocks of this one's own.
  void share(const Arena& other);
  void clear();
  uint64_t memory_bytes() const { return memory_bytes_; }

 private:
  std::vector<std::shared_ptr<char[]>> blocks_;
  char* next_ = nullptr;
  size_t left_ = 0;
  uint64_t memory_bytes_ = 0;
};

// The uses of one value. Removal moves the last use into the hole; the caller updates that use's
// back-pointer.
class UseList {
 public:
  UseList() = default;
  UseList(const UseList& other);
  UseList(UseList&& other) noexcept;
  UseList& operator=(const UseList& other);
  UseList& operator=(UseList&& other) noexcept;
  ~UseList();

  uint32_t size() const { return size_; }
  const tn_use* data() const { return capacity_ == 0 ? &inline_ : heap_; }
  tn_use* data() { return capacity_ == 0 ? &inline_ : heap_; }
  std::span<const tn_use> span() const { return {data(), size_}; }
  tn_use& operator[](uint32_t i) { return data()[i]; }
  const tn_use& operator[](uint32_t i) const { return data()[i]; }
  uint32_t push_back(const tn_use& use);  // its slot
  void pop_back() { --size_; }
  void truncate(uint32_t size) { size_ = size; }
  void reserve(uint32_t capacity);
  uint64_t memory_bytes() const { return uint64_t(capacity_) * sizeof(tn_use); }

 private:
  uint32_t size_ = 0;
  uint32_t capacity_ = 0;  // 0: the one inline place
  union {
    tn_use inline_;
    tn_use* heap_;
  };
};

// Names of values and nodes: each distinct text once, with the live values and the node that bear it.
class NamePool {
 public:
  static constexpr uint32_t none = 0;  // the empty name
  NamePool();
  struct Entry {
    const char* text = nullptr;
    uint32_t size = 0;
    uint32_t hash = 0;
    tn_value first_value = TN_NONE;  // head of a chain through the values
    tn_node node = TN_NONE;
    uint32_t next_suffix = 0;  // where the search for a free "name_N" goes on
  };
  uint32_t add(std::string_view text);
  uint32_t find(std::string_view text) const;  // TN_NONE: never seen
  std::string_view text(uint32_t name) const { return {entries_[name].text, entries_[name].size}; }
  Entry& entry(uint32_t name) { return entries_[name]; }
  const Entry& entry(uint32_t name) const { return entries_[name]; }
  uint32_t size() const { return entries_.size(); }
  void share(const NamePool& other);  // this one becomes a copy of other
  void clear();
  uint64_t memory_bytes() const { return entries_.memory_bytes() + table_.size() * 4 + text_.memory_bytes(); }

 private:
  void grow();
  ChunkedVector<Entry> entries_;
  std::vector<uint32_t> table_;  // open addressing; entry + 1, 0: free
  Arena text_;
};

}  // namespace tenon
