// Constants: where the bytes are, uniform ones, equality, and small integer contents as dims.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "core/base/memory_budget.hpp"
#include "core/base/tensor.hpp"
#include "core/base/text.hpp"
#include "core/graph/graph.hpp"
#include "core/graph/hash.hpp"
#include "core/graph/infer.hpp"

namespace tenon {

namespace {
uint64_t count_of(const tn_type& type) {
  uint64_t count = 0;
  element_count({type.dims, static_cast<size_t>(std::max(type.rank, 0))}, &count);
  return count;
}

// Element number i of sub-byte types; whole bytes are read by memcpy elsewhere.
uint8_t small_element(const uint8_t* data, uint64_t i, uint32_t bits) {
  const uint64_t bit = i * bits;
  return static_cast<uint8_t>((data[bit / 8] >> (bit % 8)) & ((1u << bits) - 1));
}

bool elements_equal(const uint8_t* data, const tn_type& type, uint64_t bytes) {
  const uint32_t bits = TN_DTYPE_BITS(type.dtype);
  const uint64_t count = count_of(type);
  if (count == 0) return false;
  if (type.dtype == TN_STRING) {
    const auto* const texts = reinterpret_cast<const tn_str*>(data);
    for (uint64_t i = 1; i < count; ++i)
      if (view(texts[i]) != view(texts[0])) return false;
    return true;
  }
  if (bits % 8 == 0) return bytes <= bits / 8 || std::memcmp(data, data + bits / 8, bytes - bits / 8) == 0;
  for (uint64_t i = 1; i < count; ++i)
    if (small_element(data, i, bits) != small_element(data, 0, bits)) return false;
  return true;
}
}  // namespace

namespace {
uint8_t* allocate_bytes(uint64_t bytes, std::shared_ptr<const void>* owner) {
  *owner = counted_bytes(bytes, "", "a constant");
  return static_cast<uint8_t*>(const_cast<void*>(owner->get()));
}
}  // namespace

// Model files place tensors anywhere; who reads them as numbers needs them aligned. Copied when first wanted,
// since many are packed, folded or dropped before.
void Graph::align(Constant& constant) {
  std::shared_ptr<const void> owner;
  uint8_t* const bytes = allocate_bytes(constant.bytes, &owner);
  std::memcpy(bytes, constant.data, constant.bytes);
  constant.data = bytes;
  constant.owner = std::move(owner);
  constant.misaligned = constant.from_file = false;
}

// Overlapping copies double what is filled at each step.
void Graph::expand(Constant& constant, const tn_type& type) {
  std::shared_ptr<const void> owner;
  uint8_t* const bytes = allocate_bytes(constant.bytes, &owner);
  const uint32_t bits = TN_DTYPE_BITS(type.dtype);
  uint8_t pattern[16];
  uint64_t filled = bits / 8;
  if (bits % 8 == 0) {
    std::memcpy(pattern, constant.element, filled);
  } else {
    uint32_t byte = 0;
    for (uint32_t at = 0; at < 8; at += bits)
      byte |= uint32_t(small_element(constant.element, 0, bits)) << at;
    pattern[0] = static_cast<uint8_t>(byte);
    filled = 1;
  }
  filled = std::min(filled, constant.bytes);
  std::memcpy(bytes, pattern, filled);
  while (filled < constant.bytes && filled != 0) {
    const uint64_t more = std::min(filled, constant.bytes - filled);
    std::memcpy(bytes + filled, bytes, more);
    filled += more;
  }
  // Bits beyond the last element are zero, as in every other packed tensor.
  if (bits % 8 != 0 && constant.bytes != 0) {
    const uint64_t used = count_of(type) * bits % 8;
    if (used != 0) bytes[constant.bytes - 1] &= static_cast<uint8_t>((1u << used) - 1);
  }
  constant.data = bytes;
  constant.owner = std::move(owner);
}

bool Graph::constant(tn_value id, tn_tensor* out) {
  if (values_[id].kind != TN_VALUE_CONSTANT) return false;
  Constant& constant = constants_[values_[id].index];
  const tn_type& type = types_[values_[id].type];
  if (constant.data == nullptr) expand(constant, type);
  if (constant.misaligned) align(constant);
  *out = {type.dtype, type.rank, type.dims, const_cast<uint8_t*>(constant.data), constant.bytes};
  return true;
}

const void* Graph::uniform_element(tn_value id) {
  if (values_[id].kind != TN_VALUE_CONSTANT) return nullptr;
  Constant& constant = constants_[values_[id].index];
  if (constant.uniform == 0) {
    const tn_type& type = types_[values_[id].type];
    const bool equal = elements_equal(constant.data, type, constant.bytes);
    constant.uniform = equal ? 1 : 2;
    const uint32_t bits = TN_DTYPE_BITS(type.dtype);
    if (equal && bits % 8 == 0)
      std::memcpy(constant.element, constant.data, bits / 8);
    else if (equal)
      constant.element[0] = small_element(constant.data, 0, bits);
  }
  return constant.uniform == 1 ? constant.element : nullptr;
}

uint64_t Graph::constant_hash(tn_value id) {
  if (values_[id].kind != TN_VALUE_CONSTANT) return 0;
  const void* const element = uniform_element(id);
  Constant& constant = constants_[values_[id].index];
  if (constant.hashed) return constant.hash;
  const tn_type& type = types_[values_[id].type];
  uint64_t hash = hash_bytes(type.dims, static_cast<uint64_t>(std::max(type.rank, 0)) * 8, type.dtype);
  const bool texts = type.dtype == TN_STRING;
  const auto hash_text = [&](const tn_str& text) { hash = hash_bytes(text.data, text.size, hash); };
  if (element && texts)
    hash_text(*static_cast<const tn_str*>(element));
  else if (element)
    hash = hash_bytes(element, sizeof constant.element, hash);
  else if (texts)
    for (uint64_t i = 0; i < constant.bytes / sizeof(tn_str); ++i)
      hash_text(reinterpret_cast<const tn_str*>(constant.data)[i]);
  else
    hash = hash_bytes(constant.data, constant.bytes, hash);
  constant.hash = hash;
  constant.hashed = true;
  return hash;
}

bool Graph::same_constant(tn_value a, tn_value b) {
  if (a == b) return true;
  if (values_[a].kind != TN_VALUE_CONSTANT || values_[b].kind != TN_VALUE_CONSTANT ||
      values_[a].type != values_[b].type)
    return false;
  const Constant &x = constants_[values_[a].index], &y = constants_[values_[b].index];
  if (x.bytes != y.bytes) return false;
  if (x.data != nullptr && x.data == y.data) return true;
  if (constant_hash(a) != constant_hash(b)) return false;
  const bool texts = types_[values_[a].type].dtype == TN_STRING;
  if (x.uniform == 1 || y.uniform == 1) {
    if (x.uniform != y.uniform) return false;
    if (texts)
      return view(*reinterpret_cast<const tn_str*>(x.element)) ==
             view(*reinterpret_cast<const tn_str*>(y.element));
    return std::memcmp(x.element, y.element, sizeof x.element) == 0;
  }
  if (!texts) return std::memcmp(x.data, y.data, x.bytes) == 0;
  for (uint64_t i = 0; i < x.bytes / sizeof(tn_str); ++i)
    if (view(reinterpret_cast<const tn_str*>(x.data)[i]) != view(reinterpret_cast<const tn_str*>(y.data)[i]))
      return false;
  return true;
}

namespace {
template <class T>
void append_numbers(const void* data, uint64_t count, SymbolTable& symbols, std::vector<tn_dim>& out) {
  for (uint64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, static_cast<const char*>(data) + i * sizeof(T), sizeof(T));
    out.push_back(symbols.number(static_cast<int64_t>(value)));
  }
}
}  // namespace

bool Graph::find_elements(tn_value id, const tn_dim** elements, uint32_t* count) {
  Value& value = values_[id];
  if (value.elements == 0 && value.kind == TN_VALUE_CONSTANT) {
    const tn_type& type = types_[value.type];
    const uint64_t number = count_of(type);
    if (number > max_known_elements) return false;
    if (type.dtype != TN_INT64 && type.dtype != TN_INT32 && type.dtype != TN_BOOL) return false;
    tn_tensor tensor{};
    if (!constant(id, &tensor)) return false;
    std::vector<tn_dim> numbers;
    numbers.reserve(number);
    if (type.dtype == TN_INT64)
      append_numbers<int64_t>(tensor.data, number, symbols_, numbers);
    else if (type.dtype == TN_INT32)
      append_numbers<int32_t>(tensor.data, number, symbols_, numbers);
    else
      append_numbers<uint8_t>(tensor.data, number, symbols_, numbers);
    value.elements = intern_elements(numbers.data(), static_cast<uint32_t>(number));
  }
  if (value.elements == 0) return false;
  *elements = elements_[value.elements].first;
  *count = elements_[value.elements].second;
  return true;
}

}  // namespace tenon
