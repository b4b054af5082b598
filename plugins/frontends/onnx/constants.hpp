// Tensors of the model to constants of the graph. Bytes that lie in a file are handed over as slices of it.
#pragma once
#include <string>
#include <unordered_map>

#include "tenon/abi/files.h"
#include "tenon/abi/graph_edit.h"
#include "tensor_reader.hpp"

namespace tenon::onnx {

class ConstantMaker {
 public:
  ConstantMaker(const tn_files_api* files, tn_file* model, const tn_edit_api* api, tn_edit* edit) noexcept
      : files_(files), model_(model), api_(api), edit_(edit) {}
  ConstantMaker(const ConstantMaker&) = delete;
  ConstantMaker& operator=(const ConstantMaker&) = delete;
  ~ConstantMaker();

  tn_value make(const TensorMessage& tensor, const std::string& name);
  tn_value make(const tn_tensor& tensor, const std::string& name);  // copied
  tn_value make(sdk::OwnedTensor tensor, const std::string& name);  // adopted

 private:
  tn_value external(const TensorMessage& tensor, const std::string& name);
  tn_value slice(const tn_tensor& tensor, tn_file* file, uint64_t offset, const std::string& name);
  tn_file* open(const TensorMessage& tensor);

  const tn_files_api* files_;
  tn_file* model_;
  const tn_edit_api* api_;
  tn_edit* edit_;
  std::unordered_map<std::string, tn_file*> opened_;  // external data files by location
};

}  // namespace tenon::onnx
