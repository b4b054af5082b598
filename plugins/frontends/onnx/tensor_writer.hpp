// tn_tensor and tn_type to TensorProto and TypeProto.
#pragma once
#include <string>
#include <string_view>

#include "tenon/abi/symbols.h"
#include "tenon/abi/types.h"

namespace tenon::onnx {

/// Where a tensor's bytes lie in an external data file.
struct ExternalPlace {
  std::string_view file;
  uint64_t offset = 0;
};

/// All of a TensorProto up to its raw bytes, which follow (tensor.bytes of them) unless the tensor is of
/// strings or external. Throws Failure for an element type ONNX has no name for.
std::string tensor_head(std::string_view name, const tn_tensor& tensor,
                        const ExternalPlace* external = nullptr);
/// Do raw bytes follow the head?
inline bool has_tail(const tn_tensor& tensor, bool external) {
  return tensor.dtype != TN_STRING && !external;
}
/// The whole message.
std::string tensor_message(std::string_view name, const tn_tensor& tensor);

/// A TypeProto; dims that are symbols become dim_params. `symbols` may be NULL when all dims are numbers.
std::string type_message(const tn_type& type, const tn_symbols_api* symbols, tn_graph* graph);

}  // namespace tenon::onnx
