// TensorProto and SparseTensorProto: what a message says, checked, before any byte of it is used.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "tenon/abi/limits.h"
#include "tenon/sdk/tensor.hpp"
#include "wire_reader.hpp"

namespace tenon::onnx {

/// A TensorProto as its message says it. Borrowed from the file.
struct TensorMessage {
  std::string_view name;
  tn_dtype dtype = TN_DTYPE_NONE;
  sdk::Dims dims;
  uint64_t bytes = 0;    // packed size that dtype and dims make
  int64_t elements = 0;  // product of dims
  bool has_raw = false;
  Bytes raw;
  bool external = false;
  std::string_view location;
  uint64_t external_offset = 0;
  std::optional<uint64_t> external_length;
  std::vector<Bytes> strings;
  // Repeated number fields. Floats stay in the file: pieces of little-endian numbers, one piece for a packed
  // field.
  std::vector<Bytes> floats, doubles;
  std::vector<int64_t> int32s, int64s, uint64s;

  /// For messages: "tensor 'w' (float32 [3,4])".
  std::string label() const;
};

/// Parses and checks everything that can be checked without the external file: element type, dims and their
/// product, the number of bytes or elements found. Throws Failure naming the tensor, what was found and what
/// was expected.
TensorMessage read_tensor(Reader message, std::string_view fallback_name = {});

/// The dense little-endian bytes of a tensor that is not external and not of strings, when they lie in the
/// file as they are; nullopt when they must be converted first (typed fields, or a bool that is neither 0 nor
/// 1).
std::optional<Bytes> bytes_in_file(const TensorMessage& tensor);

/// A copy of the elements of a tensor that is neither external nor of strings.
sdk::OwnedTensor copy_tensor(const TensorMessage& tensor);

/// The elements of a string tensor; valid as long as the file.
std::vector<tn_str> string_elements(const TensorMessage& tensor);

/// Dense copies of sparse tensors may not be larger together; a few bytes of file could otherwise ask for any
/// amount of memory.
inline constexpr uint64_t largest_dense_bytes = uint64_t{1} << 30;

/// What a sparse tensor says, and the densification of it.
struct SparseMessage {
  TensorMessage values;
  sdk::OwnedTensor dense;
};
/// `limits` (may be NULL) is asked before the dense copy is made, for which a few bytes of file can ask.
/// `left` is how many bytes of dense copies the model may still ask for; what this one takes is taken off.
SparseMessage read_sparse_tensor(Reader message, const tn_limits_api* limits, uint64_t& left);

}  // namespace tenon::onnx
