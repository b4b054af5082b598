// What many nodes and values share, kept once: types, known elements, attribute lists, origins.
#include <algorithm>
#include <cstring>

#include "core/base/text.hpp"
#include "core/graph/graph.hpp"
#include "core/graph/hash.hpp"

namespace tenon {

uint32_t Graph::intern_type(const tn_type& type) {
  if (type.kind == TN_KIND_NONE) return 0;
  const int32_t rank = type.rank < 0 ? -1 : type.rank;
  const size_t dim_bytes = rank > 0 ? static_cast<size_t>(rank) * sizeof(tn_dim) : 0;
  uint64_t hash =
      mix_hash(mix_hash(type.kind, type.dtype), mix_hash(static_cast<uint64_t>(rank), type.encoding));
  if (dim_bytes != 0) hash = hash_bytes(type.dims, dim_bytes, hash);
  const auto [first, last] = type_index_.equal_range(hash);
  for (auto at = first; at != last; ++at) {
    const tn_type& known = types_[at->second];
    if (known.kind == type.kind && known.dtype == type.dtype && known.rank == rank &&
        known.encoding == type.encoding &&
        (dim_bytes == 0 || std::memcmp(known.dims, type.dims, dim_bytes) == 0))
      return at->second;
  }
  tn_type kept{type.kind, type.dtype, rank, type.encoding, nullptr};
  auto* const dims = immutable_.allocate_array<tn_dim>(std::max<size_t>(1, dim_bytes / sizeof(tn_dim)));
  if (dim_bytes != 0) std::memcpy(dims, type.dims, dim_bytes);
  kept.dims = dims;
  types_.push_back(kept);
  type_index_.emplace(hash, types_.size() - 1);
  return types_.size() - 1;
}

uint32_t Graph::intern_elements(const tn_dim* elements, uint32_t count) {
  const uint64_t hash = hash_bytes(elements, uint64_t(count) * sizeof(tn_dim));
  const auto [first, last] = element_index_.equal_range(hash);
  for (auto at = first; at != last; ++at) {
    const auto& [known, known_count] = elements_[at->second];
    if (known_count == count && (count == 0 || std::memcmp(known, elements, count * sizeof(tn_dim)) == 0))
      return at->second;
  }
  auto* const kept = immutable_.allocate_array<tn_dim>(std::max(1u, count));
  std::copy_n(elements, count, kept);
  elements_.push_back({kept, count});
  element_index_.emplace(hash, elements_.size() - 1);
  return elements_.size() - 1;
}

bool Graph::known_elements(tn_value id, const tn_dim** elements, uint32_t* count) {
  return find_elements(id, elements, count);
}

// --- attributes

namespace {
uint64_t hash_tensor(const tn_tensor& tensor, uint64_t hash) {
  hash = mix_hash(hash, tensor.dtype);
  hash = hash_bytes(tensor.dims, static_cast<uint64_t>(std::max(tensor.rank, 0)) * 8, hash);
  if (tensor.dtype != TN_STRING) return hash_bytes(tensor.data, tensor.bytes, hash);
  const auto* const texts = static_cast<const tn_str*>(tensor.data);
  for (uint64_t i = 0; i < tensor.bytes / sizeof(tn_str); ++i)
    hash = hash_bytes(texts[i].data, texts[i].size, hash);
  return hash;
}

bool same_tensor(const tn_tensor& a, const tn_tensor& b) {
  if (a.dtype != b.dtype || a.rank != b.rank || a.bytes != b.bytes) return false;
  if (a.rank > 0 && std::memcmp(a.dims, b.dims, static_cast<size_t>(a.rank) * 8) != 0) return false;
  if (a.dtype != TN_STRING) return a.bytes == 0 || std::memcmp(a.data, b.data, a.bytes) == 0;
  const auto* const x = static_cast<const tn_str*>(a.data);
  const auto* const y = static_cast<const tn_str*>(b.data);
  for (uint64_t i = 0; i < a.bytes / sizeof(tn_str); ++i)
    if (view(x[i]) != view(y[i])) return false;
  return true;
}

uint64_t hash_attr(const tn_attr& attr, uint64_t hash) {
  hash = mix_hash(hash, (uint64_t(attr.name) << 32) | attr.kind);
  switch (attr.kind) {
    case TN_ATTR_INT:
      return mix_hash(hash, static_cast<uint64_t>(attr.u.i));
    case TN_ATTR_FLOAT:
      return hash_bytes(&attr.u.f, sizeof attr.u.f, hash);
    case TN_ATTR_STRING:
      return hash_bytes(attr.u.s.data, attr.u.s.size, hash);
    case TN_ATTR_INTS:
      return hash_bytes(attr.u.ints, attr.count * 8, hash);
    case TN_ATTR_FLOATS:
      return hash_bytes(attr.u.floats, attr.count * 8, hash);
    case TN_ATTR_STRINGS:
      for (uint64_t i = 0; i < attr.count; ++i)
        hash = hash_bytes(attr.u.strings[i].data, attr.u.strings[i].size, hash);
      return mix_hash(hash, attr.count);
    case TN_ATTR_TENSOR:
      return hash_tensor(*attr.u.tensor, hash);
    case TN_ATTR_TYPE:
      hash = mix_hash(hash, (uint64_t(attr.u.type->kind) << 32) | attr.u.type->dtype);
      return hash_bytes(attr.u.type->dims, static_cast<uint64_t>(std::max(attr.u.type->rank, 0)) * 8, hash);
    default:
      return hash;
  }
}

bool same_attr(const tn_attr& a, const tn_attr& b) {
  if (a.name != b.name || a.kind != b.kind) return false;
  switch (a.kind) {
    case TN_ATTR_INT:
      return a.u.i == b.u.i;
    case TN_ATTR_FLOAT:
      return std::memcmp(&a.u.f, &b.u.f, sizeof a.u.f) == 0;
    case TN_ATTR_STRING:
      return view(a.u.s) == view(b.u.s);
    case TN_ATTR_INTS:
      return a.count == b.count && (a.count == 0 || std::memcmp(a.u.ints, b.u.ints, a.count * 8) == 0);
    case TN_ATTR_FLOATS:
      return a.count == b.count && (a.count == 0 || std::memcmp(a.u.floats, b.u.floats, a.count * 8) == 0);
    case TN_ATTR_STRINGS:
      if (a.count != b.count) return false;
      for (uint64_t i = 0; i < a.count; ++i)
        if (view(a.u.strings[i]) != view(b.u.strings[i])) return false;
      return true;
    case TN_ATTR_TENSOR:
      return same_tensor(*a.u.tensor, *b.u.tensor);
    case TN_ATTR_TYPE: {
      const tn_type &x = *a.u.type, &y = *b.u.type;
      return x.kind == y.kind && x.dtype == y.dtype && x.rank == y.rank && x.encoding == y.encoding &&
             (x.rank <= 0 || std::memcmp(x.dims, y.dims, static_cast<size_t>(x.rank) * 8) == 0);
    }
    default:
      return false;
  }
}

tn_str kept_text(Arena& arena, tn_str text) {
  const std::string_view copy = arena.copy_text(view(text));
  return {copy.data(), copy.size()};
}
template <class T>
const T* kept_array(Arena& arena, const T* from, uint64_t count) {
  T* const copy = arena.allocate_array<T>(std::max<uint64_t>(1, count));
  std::copy_n(from, count, copy);
  return copy;
}
}  // namespace

void Graph::copy_attr(const tn_attr& from, tn_attr& to) {
  to = from;
  switch (from.kind) {
    case TN_ATTR_STRING:
      to.u.s = kept_text(immutable_, from.u.s);
      break;
    case TN_ATTR_INTS:
      to.u.ints = kept_array(immutable_, from.u.ints, from.count);
      break;
    case TN_ATTR_FLOATS:
      to.u.floats = kept_array(immutable_, from.u.floats, from.count);
      break;
    case TN_ATTR_STRINGS: {
      auto* const texts = immutable_.allocate_array<tn_str>(std::max<uint64_t>(1, from.count));
      for (uint64_t i = 0; i < from.count; ++i) texts[i] = kept_text(immutable_, from.u.strings[i]);
      to.u.strings = texts;
      break;
    }
    case TN_ATTR_TENSOR: {
      auto* const tensor = immutable_.allocate_array<tn_tensor>(1);
      *tensor = *from.u.tensor;
      tensor->dims = kept_array(immutable_, from.u.tensor->dims,
                                static_cast<uint64_t>(std::max(from.u.tensor->rank, 0)));
      auto* const bytes = static_cast<char*>(immutable_.allocate(std::max<uint64_t>(1, tensor->bytes), 64));
      if (tensor->dtype == TN_STRING) {
        const auto* const texts = static_cast<const tn_str*>(from.u.tensor->data);
        for (uint64_t i = 0; i < tensor->bytes / sizeof(tn_str); ++i)
          reinterpret_cast<tn_str*>(bytes)[i] = kept_text(immutable_, texts[i]);
      } else if (tensor->bytes != 0) {
        std::memcpy(bytes, from.u.tensor->data, tensor->bytes);
      }
      tensor->data = bytes;
      to.u.tensor = tensor;
      break;
    }
    case TN_ATTR_TYPE: {
      auto* const type = immutable_.allocate_array<tn_type>(1);
      *type = *from.u.type;
      type->dims =
          kept_array(immutable_, from.u.type->dims, static_cast<uint64_t>(std::max(from.u.type->rank, 0)));
      to.u.type = type;
      break;
    }
    default:
      break;
  }
}

// A list equal to a known one is that one: the nodes of a network have few different lists.
const tn_attr* Graph::intern_attrs(const tn_attr* attrs, uint32_t count, uint32_t stride) {
  if (count == 0) return nullptr;
  const auto at = [&](uint32_t i) -> const tn_attr& {
    return *reinterpret_cast<const tn_attr*>(reinterpret_cast<const char*>(attrs) + size_t(i) * stride);
  };
  uint64_t hash = count;
  for (uint32_t i = 0; i < count; ++i) hash = hash_attr(at(i), hash);
  const auto [first, last] = attr_index_.equal_range(hash);
  for (auto known = first; known != last; ++known) {
    if (known->second.second != count) continue;
    bool same = true;
    for (uint32_t i = 0; i < count && same; ++i) same = same_attr(known->second.first[i], at(i));
    if (same) return known->second.first;
  }
  auto* const list = immutable_.allocate_array<tn_attr>(count);
  for (uint32_t i = 0; i < count; ++i) copy_attr(at(i), list[i]);
  attr_index_.emplace(hash, std::pair<const tn_attr*, uint32_t>(list, count));
  return list;
}

// --- origins: leaves are names, everything else joins two; equal ones are one

uint32_t Graph::leaf_origin(uint32_t name) {
  if (name == NamePool::none) return 0;
  const auto [at, added] = origin_index_.emplace(name, static_cast<uint32_t>(origins_.size()));
  if (added) origins_.push_back({name, 0, 0});
  return at->second;
}

uint32_t Graph::join_origins(uint32_t a, uint32_t b) {
  if (a == 0 || a == b) return b;
  if (b == 0) return a;
  const uint64_t key = (uint64_t(a) << 32) | b;  // a is not 0, so leaves' keys differ
  const auto [at, added] = origin_index_.emplace(key, static_cast<uint32_t>(origins_.size()));
  if (added) origins_.push_back({0, a, b});
  return at->second;
}

std::vector<std::string_view> Graph::origins(tn_node id) const {
  std::vector<std::string_view> found;
  std::unordered_map<uint32_t, bool> seen;
  std::vector<uint32_t> open{nodes_[id].origin};
  while (!open.empty()) {
    const uint32_t at = open.back();
    open.pop_back();
    if (at == 0 || !seen.emplace(at, true).second) continue;
    const Origin& origin = origins_[at];
    if (origin.left == 0) {
      found.push_back(names_.text(origin.name));
    } else {
      open.push_back(origin.right);
      open.push_back(origin.left);
    }
  }
  return found;
}

tn_dim Graph::data_dependent(tn_node node, uint32_t output, uint32_t axis, int64_t lo, int64_t hi) {
  const std::string key = fmt::format("{}:{}:{}:{}:{}", node, output, axis, lo, hi);
  const auto found = data_dependent_.find(key);
  if (found != data_dependent_.end()) return found->second;
  const tn_value value = nodes_[node].output(output);
  std::string hint = value == TN_NONE ? std::string() : std::string(name(value)) + "." + std::to_string(axis);
  const tn_dim dim = symbols_.fresh(hint, lo, hi);
  data_dependent_.emplace(key, dim);
  return dim;
}

}  // namespace tenon
