// numpy's .npy: header, and elements both ways.
#pragma once
#include <string>
#include <vector>

#include "formats.hpp"
#include "tenon/sdk/tensor.hpp"

namespace tenon::tensors {

struct NpyHeader {
  std::string descr;  // "<f4"
  char kind = 0;      // b i u f c U S V
  uint32_t item_bytes = 0;
  bool big_endian = false;
  bool fortran = false;
  sdk::Dims dims;
  int64_t elements = 0;
  uint64_t data_offset = 0;  // bytes before the elements
  uint64_t data_bytes = 0;   // of the elements as stored
};

/// Bytes that hold the header's length; enough for header_bytes.
inline constexpr uint64_t npy_prefix_bytes = 12;
/// Where the elements begin, from the first bytes of the file. Throws when this is no .npy file.
uint64_t npy_header_bytes(const uint8_t* bytes, uint64_t count, const std::string& where);
/// Parses the whole header; every number is checked, products against overflow.
NpyHeader read_npy_header(const uint8_t* bytes, uint64_t count, const std::string& where);

/// A tensor read from a file: borrowed from the file's bytes when they can be used as they are, else
/// converted.
class LoadedTensor {
 public:
  const tn_tensor& get() const noexcept { return tensor_; }
  /// `data` must stay valid as long as this. `expected` decides raw types that .npy has no name for.
  static LoadedTensor decode(const NpyHeader& header, const uint8_t* data, tn_dtype expected,
                             const std::string& where, const Budget& budget);
  LoadedTensor(LoadedTensor&&) = default;

 private:
  LoadedTensor() = default;
  tn_tensor tensor_{};
  sdk::Dims dims_;
  sdk::OwnedTensor owned_;
  std::vector<std::string> texts_;
  std::vector<tn_str> views_;
};

/// A tensor as .npy: the header, then `data` (the tensor's own bytes, or converted ones kept in `converted`).
struct NpyImage {
  std::string header;
  const void* data = nullptr;
  uint64_t bytes = 0;
  std::string converted;
};
NpyImage make_npy(const tn_tensor& tensor, const std::string& where);

}  // namespace tenon::tensors
