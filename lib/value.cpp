// Values: tensors, sequences and optionals that are counted.
#include <algorithm>

#include "core/base/tensor.hpp"
#include "core/base/text.hpp"
#include "lib/internal.hpp"

namespace tenon::lib {

tn_tensor checked_tensor(const tn_tensor& tensor, const std::string& where) {
  if (!dtype_is_known(tensor.dtype))
    throw Error(exit_bad_input, where, "has an element type that is none (" + dtype_name(tensor.dtype) + ")");
  if (tensor.rank < 0 || (tensor.rank > 0 && tensor.dims == nullptr))
    throw Error(exit_bad_input, where,
                "has rank " + std::to_string(tensor.rank) + (tensor.rank > 0 ? " and no dimensions" : "") +
                    "; expected one dimension for each axis");
  const std::span<const int64_t> dims(tensor.dims, static_cast<size_t>(tensor.rank));
  uint64_t bytes = 0;
  if (!tensor_bytes(tensor.dtype, dims, &bytes))
    throw Error(exit_bad_input, where, "has a shape that is none: " + dims_text(dims));
  if (tensor.bytes != bytes || (tensor.data == nullptr && bytes != 0))
    throw Error(
        exit_bad_input, where,
        fmt::format("has {} bytes of data for {}{}; expected {}", tensor.data == nullptr ? 0 : tensor.bytes,
                    dtype_name(tensor.dtype), dims_text(dims), bytes));
  return tensor;
}

}  // namespace tenon::lib

using namespace tenon;
using namespace tenon::lib;

tenon_status tenon_value_tensor(const tn_tensor* tensor, uint32_t borrow, tenon_value** value,
                                tenon_error** error) {
  return guarded(error, [&] {
    require(tensor, "tensor");
    require(value, "value");
    *value = nullptr;
    if (borrow > TENON_BORROW) throw Misuse{"borrow is neither TENON_COPY nor TENON_BORROW"};
    const tn_tensor checked = checked_tensor(*tensor, "tensor");
    *value = value_of(
        (borrow == TENON_BORROW ? borrow_tensor(checked, nullptr) : copy_tensor(checked, "tensor")).take());
  });
}

tenon_status tenon_value_sequence(tenon_value* const* items, size_t count, tn_dtype dtype,
                                  tenon_value** value, tenon_error** error) {
  return guarded(error, [&] {
    require(value, "value");
    *value = nullptr;
    if (count != 0) require(items, "items");
    std::vector<tn_any*> list;
    for (size_t i = 0; i < count; ++i) {
      const std::string where = "item " + std::to_string(i);
      require(items[i], where.c_str());
      list.push_back(any_of(items[i]));
      if (list.back()->kind != TN_KIND_TENSOR)
        throw Error(exit_bad_input, where, "is no tensor; a sequence holds tensors");
      if (dtype == TN_DTYPE_NONE) dtype = list.back()->dtype;
      if (list.back()->dtype != dtype)
        throw Error(exit_bad_input, where,
                    "is of " + dtype_name(list.back()->dtype) + "; this sequence is of " + dtype_name(dtype));
    }
    if (!dtype_is_known(dtype))
      throw Error(exit_bad_input, "sequence", "has neither items nor an element type");
    *value = value_of(new_sequence(list, dtype).take());
  });
}

tenon_status tenon_value_optional(tenon_value* item, tenon_value** value, tenon_error** error) {
  return guarded(error, [&] {
    require(value, "value");
    *value = nullptr;
    *value = value_of(new_optional(any_of(item)).take());
  });
}

tn_type_kind tenon_value_kind(const tenon_value* value) {
  return value == nullptr ? TN_KIND_NONE : static_cast<tn_type_kind>(any_of(value)->kind);
}
size_t tenon_value_count(const tenon_value* value) {
  return value == nullptr ? 0 : any_of(value)->items.size();
}
const tenon_value* tenon_value_item(const tenon_value* value, size_t index) {
  return index < tenon_value_count(value) ? value_of(any_of(value)->items[index]) : nullptr;
}

tenon_status tenon_value_get(const tenon_value* value, tn_tensor* tensor) {
  return guarded(nullptr, [&] {
    require(value, "value");
    require(tensor, "tensor");
    if (any_of(value)->kind != TN_KIND_TENSOR) throw Misuse{"the value is no tensor"};
    *tensor = any_of(value)->tensor();
  });
}

void tenon_value_free(tenon_value* value) {
  if (value != nullptr) any_release(any_of(value));
}
