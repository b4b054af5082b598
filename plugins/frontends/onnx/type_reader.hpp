// TypeProto to tn_type.
#pragma once
#include <string>
#include <vector>

#include "tenon/abi/symbols.h"
#include "wire_reader.hpp"

namespace tenon::onnx {

class TypeReader {
 public:
  struct Type {
    tn_type type{TN_KIND_NONE, TN_DTYPE_NONE, -1, 0, nullptr};
    std::vector<tn_dim> dims;
    /// Points the type at its dims; call after the Type has come to rest.
    const tn_type* get() noexcept {
      type.dims = dims.empty() ? nullptr : dims.data();
      return &type;
    }
    /// The same kind and element type, nothing about the shape.
    tn_type unranked() const noexcept { return {type.kind, type.dtype, -1, type.encoding, nullptr}; }
  };

  TypeReader(const tn_symbols_api* symbols, tn_graph* graph) noexcept : symbols_(symbols), graph_(graph) {}

  /// `value` is the name of the value, for messages and for the hints of unnamed dimensions. Maps, sparse
  /// tensors, opaque types and sequences of sequences are refused by name.
  Type read(Reader message, const std::string& value) const { return read(message, value, true); }
  /// Kind and element type alone: no shape, and no symbol for its dimensions.
  Type read_element(Reader message, const std::string& value) const { return read(message, value, false); }

 private:
  Type read(Reader message, const std::string& value, bool with_shape) const;
  void read_tensor(Reader message, Type& out, const std::string& value, bool with_shape) const;
  tn_dim read_dim(Reader message, const std::string& value, size_t axis) const;
  const tn_symbols_api* symbols_;
  tn_graph* graph_;
};

}  // namespace tenon::onnx
