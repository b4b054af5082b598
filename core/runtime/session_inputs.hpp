// Checking what a caller gives a session against what its graph declares.
#pragma once
#include <map>
#include <vector>

#include "core/graph/graph.hpp"
#include "core/runtime/session.hpp"

namespace tenon {

class InputChecker {
 public:
  explicit InputChecker(const Graph& graph);

  const std::vector<InputInfo>& inputs() const { return inputs_; }
  const std::vector<OutputInfo>& outputs() const { return outputs_; }

  // For each input of the graph the number of the tensor given, or -1 where its default is to be used. Throws
  // Error (exit code 2) with all findings: missing, unknown, given twice, of another kind, type, rank or
  // size.
  void check(std::span<const NamedTensor> given, std::vector<int>* order) const;

 private:
  struct Dim {
    int64_t number = -1;  // >= 0: must be that
    int32_t symbol = -1;  // else a number among symbols_; -1: an expression or nothing is known
    int64_t lo = 0, hi = INT64_MAX;
  };
  struct Input {
    tn_type type{};
    std::vector<Dim> dims;
  };
  std::string declared_shape(size_t input) const;
  void check_one(size_t input, const NamedTensor& given, std::vector<int64_t>& bound,
                 std::vector<std::string>& bound_by, Diagnostics& found) const;

  std::vector<InputInfo> inputs_;
  std::vector<OutputInfo> outputs_;
  std::vector<Input> details_;
  std::vector<std::string> symbols_;
  std::map<std::string, size_t, std::less<>> by_name_;
};

}  // namespace tenon
