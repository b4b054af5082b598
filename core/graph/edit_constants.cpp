// Making constants, with the checks that outside data needs.
#include <cstdlib>
#include <cstring>
#include <new>

#include "core/base/diagnostics.hpp"
#include "core/base/memory_budget.hpp"
#include "core/base/tensor.hpp"
#include "core/base/text.hpp"
#include "core/graph/edit.hpp"

using namespace tenon;

namespace {
constexpr uint8_t no_bytes[64] = {};
constexpr uint64_t arena_limit_bytes = 256;  // smaller constants need no block of their own
}  // namespace

tn_status tn_edit::check_tensor(std::string_view name, const tn_tensor* tensor) {
  if (!tensor) return refuse(fmt::format("constant '{}': no tensor given", name));
  if (!dtype_is_known(tensor->dtype))
    return refuse(fmt::format("constant '{}': unknown element type {}", name, dtype_name(tensor->dtype)));
  if (tensor->rank < 0 || tensor->rank > 1024 || (tensor->rank != 0 && !tensor->dims))
    return refuse(fmt::format("constant '{}': rank {} without dimensions", name, tensor->rank));
  uint64_t bytes = 0;
  if (!tensor_bytes(tensor->dtype, {tensor->dims, static_cast<size_t>(tensor->rank)}, &bytes))
    return refuse(
        fmt::format("constant '{}': a negative dimension, or more elements than can be addressed", name));
  return TN_OK;
}

tn_value tn_edit::add_constant(std::string_view name, const tn_tensor& tensor, Constant made) {
  tensor_bytes(tensor.dtype, {tensor.dims, static_cast<size_t>(tensor.rank)}, &made.bytes);
  if (made.bytes == 0) made.data = no_bytes;
  const tn_type type{TN_KIND_TENSOR, tensor.dtype, tensor.rank, 0, tensor.dims};
  // Named in no region's order: a constant is visible everywhere, so it belongs to the main one.
  const uint32_t given =
      graph.unique_name(name.empty() ? std::string_view("const") : name.substr(0, size_t(1) << 20), false);
  return graph.add_constant(std::move(made), given, graph.intern_type(type), Graph::main_region);
}

namespace {
tn_status wrong_size(std::string_view name, uint64_t expected, uint64_t found, std::string* text) {
  *text =
      fmt::format("constant '{}': its type and shape need {} bytes, {} were given", name, expected, found);
  return TN_ERR_INVALID;
}
uint64_t needed_bytes(const tn_tensor& tensor) {
  uint64_t bytes = 0;
  tensor_bytes(tensor.dtype, {tensor.dims, static_cast<size_t>(tensor.rank)}, &bytes);
  return bytes;
}
}  // namespace

tn_status tn_edit::constant_copy(std::string_view name, const tn_tensor* tensor, tn_value* value) {
  *value = TN_NONE;
  if (const tn_status status = check_tensor(name, tensor); status != TN_OK) return status;
  const uint64_t bytes = needed_bytes(*tensor);
  std::string text;
  if (bytes != tensor->bytes && wrong_size(name, bytes, tensor->bytes, &text)) return refuse(std::move(text));
  if (bytes != 0 && !tensor->data) return refuse(fmt::format("constant '{}': no bytes given", name));
  Constant made;
  if (tensor->dtype == TN_STRING) {
    auto kept = std::make_shared<Tensor>(Tensor::copy_of(*tensor));
    made.data = static_cast<const uint8_t*>(kept->data());
    made.owner = std::move(kept);
  } else if (bytes <= arena_limit_bytes) {
    auto* const copy =
        static_cast<uint8_t*>(graph.immutable_.allocate(std::max<uint64_t>(bytes, 1), bytes >= 64 ? 64 : 16));
    if (bytes != 0) std::memcpy(copy, tensor->data, bytes);
    made.data = copy;
  } else {
    try {
      made.owner = counted_bytes(bytes, fmt::format("constant '{}'", name), "its copy");
    } catch (const Error& error) {
      refuse(error.what());
      return TN_ERR_LIMIT;
    }
    auto* const copy = static_cast<uint8_t*>(const_cast<void*>(made.owner.get()));
    std::memcpy(copy, tensor->data, bytes);
    made.data = copy;
  }
  *value = add_constant(name, *tensor, std::move(made));
  return TN_OK;
}

tn_status tn_edit::constant_adopt(std::string_view name, const tn_tensor* tensor, void (*release)(void*),
                                  void* context, tn_value* value, bool counted) {
  *value = TN_NONE;
  if (const tn_status status = check_tensor(name, tensor); status != TN_OK) return status;
  const uint64_t bytes = needed_bytes(*tensor);
  std::string text;
  if (bytes != tensor->bytes && wrong_size(name, bytes, tensor->bytes, &text)) return refuse(std::move(text));
  if (bytes != 0 && !tensor->data) return refuse(fmt::format("constant '{}': no bytes given", name));
  if (tensor->dtype == TN_STRING) {
    const tn_status status = constant_copy(name, tensor, value);
    if (status == TN_OK && release) release(context);
    return status;
  }
  std::shared_ptr<const MemoryShare> share;
  try {
    if (counted) share = std::make_shared<MemoryShare>(bytes, fmt::format("constant '{}'", name), "its copy");
  } catch (const Error& error) {
    refuse(error.what());
    return TN_ERR_LIMIT;
  }
  Constant made;
  made.data = static_cast<const uint8_t*>(tensor->data);
  made.owner = std::shared_ptr<const void>(tensor->data, [release, context, share](const void*) {
    if (release) release(context);
  });
  *value = add_constant(name, *tensor, std::move(made));
  return TN_OK;
}

tn_status tn_edit::constant_slice(std::string_view name, const tn_tensor* tensor, tn_file* file,
                                  uint64_t offset, tn_value* value) {
  *value = TN_NONE;
  if (const tn_status status = check_tensor(name, tensor); status != TN_OK) return status;
  if (!file) return refuse(fmt::format("constant '{}': no file given", name));
  if (tensor->dtype == TN_STRING)
    return refuse(
        fmt::format("constant '{}': texts cannot be a slice of a file; make them by copying", name));
  auto mapping = mapped_file(file);
  const uint64_t bytes = needed_bytes(*tensor);
  std::string text;
  if (bytes != tensor->bytes && wrong_size(name, bytes, tensor->bytes, &text)) return refuse(std::move(text));
  if (offset > mapping->size() || bytes > mapping->size() - offset)
    return refuse(
        fmt::format("constant '{}': {} bytes at offset {} of {}, which has {}; the file was cut short or the "
                    "offset is wrong",
                    name, bytes, offset, mapping->path(), mapping->size()));
  if (mapping->was_truncated())
    return refuse(fmt::format("constant '{}': {} became shorter since it was opened", name, mapping->path()));
  Constant made;
  made.data = mapping->data() + offset;
  made.file_offset = offset;
  made.from_file = true;
  const uint64_t alignment = std::min<uint64_t>(8, std::max<uint64_t>(1, TN_DTYPE_BITS(tensor->dtype) / 8));
  made.misaligned = reinterpret_cast<uintptr_t>(made.data) % alignment != 0;
  made.owner = std::move(mapping);
  *value = add_constant(name, *tensor, std::move(made));
  return TN_OK;
}

tn_status tn_edit::constant_uniform(std::string_view name, const tn_tensor* tensor, tn_value* value) {
  *value = TN_NONE;
  if (const tn_status status = check_tensor(name, tensor); status != TN_OK) return status;
  if (!tensor->data) return refuse(fmt::format("constant '{}': no element given", name));
  Constant made;
  made.uniform = 1;
  const uint32_t bits = TN_DTYPE_BITS(tensor->dtype);
  if (tensor->dtype == TN_STRING) {
    const std::string_view kept = graph.immutable_.copy_text(view(*static_cast<const tn_str*>(tensor->data)));
    const tn_str element{kept.data(), kept.size()};
    std::memcpy(made.element, &element, sizeof element);
  } else if (bits % 8 == 0) {
    std::memcpy(made.element, tensor->data, bits / 8);
  } else {
    made.element[0] = static_cast<uint8_t>(*static_cast<const uint8_t*>(tensor->data) & ((1u << bits) - 1));
  }
  if (needed_bytes(*tensor) == 0) made.uniform = 2;  // no element to speak of
  *value = add_constant(name, *tensor, std::move(made));
  return TN_OK;
}
