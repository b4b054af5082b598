#include "core/runtime/value_handle.hpp"

#include <cstdlib>
#include <cstring>
#include <new>

#include "core/base/diagnostics.hpp"
#include "core/base/tensor.hpp"
#include "core/base/text.hpp"

namespace tenon {
namespace {

void* allocate(uint64_t bytes) {
  const uint64_t rounded = (bytes + 63) / 64 * 64;
  void* data = std::aligned_alloc(64, rounded == 0 ? 64 : rounded);
  if (data == nullptr) throw std::bad_alloc();
  return data;
}

}  // namespace

std::string dims_text(std::span<const int64_t> dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i != 0) text += ',';
    text += dims[i] < 0 ? "?" : std::to_string(dims[i]);
  }
  return text + "]";
}

uint64_t checked_bytes(tn_dtype dtype, std::span<const int64_t> dims, const std::string& where) {
  for (const int64_t dim : dims) {
    if (dim < 0) {
      throw Error(
          exit_job_failed, where,
          fmt::format("a tensor with a negative dimension {}; expected numbers from 0 up", dims_text(dims)));
    }
  }
  uint64_t bytes = 0;
  if (!tensor_bytes(dtype, dims, &bytes)) {
    throw Error(exit_job_failed, where,
                fmt::format("{} {} is too large: its size does not fit in 63 bits; use smaller shapes",
                            dtype_name(dtype), dims_text(dims)));
  }
  return bytes;
}

void any_retain(tn_any* any) { any->references.fetch_add(1, std::memory_order_relaxed); }

void any_release(tn_any* any) {
  std::vector<tn_any*> pending;  // allocates only for a last reference to something nested
  while (any != nullptr) {
    tn_any* next = nullptr;
    if (any->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      for (tn_any* item : any->items) {
        if (next == nullptr) {
          next = item;
        } else if (item != nullptr) {
          pending.push_back(item);
        }
      }
      if (any->allocated_bytes != 0) {
        std::free(any->data);
        give_memory_back(any->allocated_bytes);
      }
      delete any;
    }
    if (next == nullptr && !pending.empty()) {
      next = pending.back();
      pending.pop_back();
    }
    any = next;
  }
}

AnyRef new_tensor(tn_dtype dtype, std::span<const int64_t> dims, const std::string& where) {
  const uint64_t bytes = checked_bytes(dtype, dims, where);
  MemoryShare share(bytes == 0 ? 64 : bytes, where, fmt::format("{} {}", dtype_name(dtype), dims_text(dims)));
  AnyRef any = AnyRef::adopt(new tn_any);
  any->dtype = dtype;
  any->dims.assign(dims.begin(), dims.end());
  any->data = allocate(bytes);
  any->allocated_bytes = share.release();
  any->bytes = bytes;
  if (dtype == TN_STRING) std::memset(any->data, 0, bytes);
  return any;
}

AnyRef copy_tensor(const tn_tensor& tensor, const std::string& where) {
  AnyRef any = new_tensor(tensor.dtype, {tensor.dims, static_cast<size_t>(tensor.rank)}, where);
  if (tensor.dtype != TN_STRING) {
    if (any->bytes != 0) std::memcpy(any->data, tensor.data, any->bytes);
    return any;
  }
  any->texts = std::make_unique<std::deque<std::string>>();
  const auto* source = static_cast<const tn_str*>(tensor.data);
  auto* target = static_cast<tn_str*>(any->data);
  for (uint64_t i = 0; i < any->bytes / sizeof(tn_str); ++i) {
    any->texts->emplace_back(view(source[i]));
    target[i] = to_abi(any->texts->back());
  }
  return any;
}

AnyRef borrow_tensor(const tn_tensor& tensor, std::shared_ptr<const void> keep) {
  AnyRef any = AnyRef::adopt(new tn_any);
  any->dtype = tensor.dtype;
  any->dims.assign(tensor.dims, tensor.dims + tensor.rank);
  any->data = tensor.data;
  any->bytes = tensor.bytes;
  any->keep = std::move(keep);
  return any;
}

AnyRef new_sequence(std::span<tn_any* const> items, tn_dtype dtype) {
  AnyRef any = AnyRef::adopt(new tn_any);
  any->kind = TN_KIND_SEQUENCE;
  any->dtype = dtype;
  any->items.assign(items.begin(), items.end());
  for (tn_any* item : any->items) any_retain(item);
  return any;
}

AnyRef new_optional(tn_any* item) {
  AnyRef any = AnyRef::adopt(new tn_any);
  any->kind =
      item != nullptr && item->kind == TN_KIND_SEQUENCE ? TN_KIND_OPTIONAL_SEQUENCE : TN_KIND_OPTIONAL;
  if (item != nullptr) {
    any->dtype = item->dtype;
    any->items.push_back(item);
    any_retain(item);
  }
  return any;
}

AnyRef with_own_texts(tn_any* any) {
  if (any == nullptr || any->dtype != TN_STRING) return AnyRef::share(any);
  if (any->kind == TN_KIND_TENSOR) return copy_tensor(any->tensor(), "a text tensor");
  // Optional of sequence of tensor is the deepest there is.
  std::vector<AnyRef> copies;
  std::vector<tn_any*> items;
  for (tn_any* item : any->items) {
    copies.push_back(with_own_texts(item));
    items.push_back(copies.back().get());
  }
  if (any->kind == TN_KIND_SEQUENCE) return new_sequence(items, any->dtype);
  return new_optional(items.empty() ? nullptr : items.front());
}

}  // namespace tenon
