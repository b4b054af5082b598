// AttributeProto to tn_attr.
#pragma once
#include <deque>
#include <string>
#include <vector>

#include "model_messages.hpp"
#include "tenon/abi/graph.h"
#include "tenon/sdk/tensor.hpp"
#include "tensor_reader.hpp"
#include "type_reader.hpp"

namespace tenon::onnx {

/// Keeps what the attributes of one node point at, until clear(). The containers never move their elements.
class AttributeStore {
 public:
  explicit AttributeStore(const tn_limits_api* limits) noexcept : limits_(limits) {}
  void clear();
  /// Decodes one attribute (not of type graph). `where` names the node for messages.
  tn_attr decode(const AttributeMessage& attribute, tn_sym name, const char* file_start,
                 const TypeReader& types, const std::string& where);
  /// The tensor a Constant node's attribute stands for: value, value_int(s), value_float(s), value_string(s).
  tn_tensor scalar_or_list(const tn_attr& attribute);

 private:
  const tn_tensor* tensor(Reader message, const std::string& where);
  const tn_limits_api* limits_;
  uint64_t dense_bytes_left_ = largest_dense_bytes;
  std::deque<std::vector<int64_t>> ints_;
  std::deque<std::vector<double>> floats_;
  std::deque<std::vector<tn_str>> strings_;
  std::deque<sdk::OwnedTensor> owned_;
  std::deque<tn_tensor> tensors_;
  std::deque<TypeReader::Type> types_;
};

}  // namespace tenon::onnx
