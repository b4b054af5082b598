#include "core/graph/storage.hpp"

#include <algorithm>
#include <new>

namespace tenon {

namespace {
constexpr size_t arena_block_bytes = size_t(1) << 16;
}

void* Arena::allocate(size_t bytes, size_t alignment) {
  auto misfit = (alignment - reinterpret_cast<uintptr_t>(next_) % alignment) % alignment;
  if (next_ == nullptr || misfit + bytes > left_) {
    // What is large gets a block of its own, and the open block stays open.
    const bool large = bytes > arena_block_bytes / 4;
    const size_t block_bytes = large ? bytes + alignment : arena_block_bytes;
    std::shared_ptr<char[]> block(new char[block_bytes]);
    blocks_.push_back(block);
    memory_bytes_ += block_bytes;
    if (large) {
      char* const start = block.get();
      return start + (alignment - reinterpret_cast<uintptr_t>(start) % alignment) % alignment;
    }
    next_ = block.get();
    left_ = block_bytes;
    misfit = (alignment - reinterpret_cast<uintptr_t>(next_) % alignment) % alignment;
  }
  char* const place = next_ + misfit;
  next_ += misfit + bytes;
  left_ -= misfit + bytes;
  return place;
}

std::string_view Arena::copy_text(std::string_view text) {
  if (text.empty()) return std::string_view("", 0);
  char* const place = static_cast<char*>(allocate(text.size(), 1));
  std::memcpy(place, text.data(), text.size());
  return {place, text.size()};
}

void Arena::share(const Arena& other) {
  blocks_.insert(blocks_.end(), other.blocks_.begin(), other.blocks_.end());
  memory_bytes_ += other.memory_bytes_;
}

void Arena::clear() {
  blocks_.clear();
  next_ = nullptr;
  left_ = 0;
  memory_bytes_ = 0;
}

UseList::UseList(const UseList& other) { *this = other; }
UseList::UseList(UseList&& other) noexcept { *this = std::move(other); }
UseList& UseList::operator=(const UseList& other) {
  if (this == &other) return *this;
  size_ = 0;
  reserve(other.size_);
  std::copy_n(other.data(), other.size_, data());
  size_ = other.size_;
  return *this;
}
UseList& UseList::operator=(UseList&& other) noexcept {
  if (this == &other) return *this;
  if (capacity_ != 0) delete[] heap_;
  size_ = other.size_;
  capacity_ = other.capacity_;
  if (capacity_ != 0)
    heap_ = other.heap_;
  else
    inline_ = other.inline_;
  other.size_ = 0;
  other.capacity_ = 0;
  return *this;
}
UseList::~UseList() {
  if (capacity_ != 0) delete[] heap_;
}
void UseList::reserve(uint32_t capacity) {
  if (capacity <= std::max(capacity_, 1u)) return;
  auto* const larger = new tn_use[capacity];
  std::copy_n(data(), size_, larger);
  if (capacity_ != 0) delete[] heap_;
  heap_ = larger;
  capacity_ = capacity;
}
uint32_t UseList::push_back(const tn_use& use) {
  if (size_ >= std::max(capacity_, 1u)) {
    const tn_use kept = use;  // it may lie in the array that is replaced
    reserve(std::max(4u, size_ * 2));
    data()[size_] = kept;
  } else {
    data()[size_] = use;
  }
  return size_++;
}

namespace {
uint32_t hash_text(std::string_view text) {
  uint64_t hash = 1469598103934665603ull;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return static_cast<uint32_t>(hash ^ (hash >> 32));
}
}  // namespace

NamePool::NamePool() { clear(); }

void NamePool::clear() {
  entries_.clear();
  text_.clear();
  table_.assign(64, 0);
  entries_.push_back(Entry{"", 0, hash_text({}), TN_NONE, TN_NONE, 0});
  table_[entries_[0].hash & (table_.size() - 1)] = 1;
}

uint32_t NamePool::find(std::string_view text) const {
  const uint32_t hash = hash_text(text);
  const size_t mask = table_.size() - 1;
  for (size_t at = hash & mask; table_[at] != 0; at = (at + 1) & mask) {
    const Entry& entry = entries_[table_[at] - 1];
    if (entry.hash == hash && std::string_view(entry.text, entry.size) == text) return table_[at] - 1;
  }
  return TN_NONE;
}

uint32_t NamePool::add(std::string_view text) {
  const uint32_t known = find(text);
  if (known != TN_NONE) return known;
  if (entries_.size() * 2 >= table_.size()) grow();
  const std::string_view kept = text_.copy_text(text);
  Entry entry;
  entry.text = kept.data();
  entry.size = static_cast<uint32_t>(kept.size());
  entry.hash = hash_text(text);
  entries_.push_back(entry);
  const size_t mask = table_.size() - 1;
  size_t at = entry.hash & mask;
  while (table_[at] != 0) at = (at + 1) & mask;
  table_[at] = entries_.size();
  return entries_.size() - 1;
}

void NamePool::grow() {
  std::vector<uint32_t> larger(table_.size() * 2, 0);
  const size_t mask = larger.size() - 1;
  for (uint32_t i = 0; i < entries_.size(); ++i) {
    size_t at = entries_[i].hash & mask;
    while (larger[at] != 0) at = (at + 1) & mask;
    larger[at] = i + 1;
  }
  table_ = std::move(larger);
}

void NamePool::share(const NamePool& other) {
  entries_ = other.entries_;
  table_ = other.table_;
  text_.clear();
  text_.share(other.text_);
}

}  // namespace tenon
