#include "core/runtime/session_inputs.hpp"

#include <algorithm>

#include "core/base/tensor.hpp"
#include "core/base/text.hpp"

namespace tenon {
namespace {

std::string kind_text(uint32_t kind) {
  switch (kind) {
    case TN_KIND_TENSOR:
      return "a tensor";
    case TN_KIND_SEQUENCE:
      return "a sequence";
    case TN_KIND_OPTIONAL:
    case TN_KIND_OPTIONAL_SEQUENCE:
      return "an optional";
    default:
      return "nothing";
  }
}

std::vector<std::string> dim_texts(const Graph& graph, const tn_type& type) {
  std::vector<std::string> texts;
  for (int32_t d = 0; d < type.rank; ++d)
    texts.push_back(type.dims[d] >= 0 ? std::to_string(type.dims[d]) : graph.symbols().text(type.dims[d]));
  return texts;
}

}  // namespace

InputChecker::InputChecker(const Graph& graph) {
  const Region& region = graph.region(Graph::main_region);
  for (size_t i = 0; i < region.inputs.size(); ++i) {
    const tn_value value = region.inputs[i];
    const tn_type& type = graph.type(value);
    const std::string name(graph.name(value));
    inputs_.push_back({name, static_cast<tn_type_kind>(type.kind), type.dtype, dim_texts(graph, type),
                       type.rank >= 0, graph.default_of(value) != TN_NONE});
    by_name_.emplace(name, i);
    Input detail;
    detail.type = type;
    detail.type.dims = nullptr;
    for (int32_t d = 0; d < type.rank; ++d) {
      Dim dim;
      std::string_view symbol;
      if (type.dims[d] >= 0) {
        dim.number = type.dims[d];
      } else {
        graph.symbols().range(type.dims[d], &dim.lo, &dim.hi);
        if (graph.symbols().is_symbol(type.dims[d], &symbol)) {
          const auto known = std::find(symbols_.begin(), symbols_.end(), symbol);
          dim.symbol = static_cast<int32_t>(known - symbols_.begin());
          if (known == symbols_.end()) symbols_.emplace_back(symbol);
        }
      }
      detail.dims.push_back(dim);
    }
    details_.push_back(std::move(detail));
  }
  for (uint32_t i = 0; i < region.outputs.size(); ++i) {
    const tn_type& type = graph.type(region.outputs[i]);
    outputs_.push_back({std::string(graph.output_name(Graph::main_region, i)),
                        static_cast<tn_type_kind>(type.kind), type.dtype, dim_texts(graph, type),
                        type.rank >= 0});
  }
}

std::string InputChecker::declared_shape(size_t input) const {
  return inputs_[input].rank_known ? "[" + join(inputs_[input].dims, ",") + "]" : "of any shape";
}

void InputChecker::check_one(size_t input, const NamedTensor& given, std::vector<int64_t>& bound,
                             std::vector<std::string>& bound_by, Diagnostics& found) const {
  const InputInfo& info = inputs_[input];
  const Input& detail = details_[input];
  const std::string place = "input '" + info.name + "'";
  const uint32_t kind = given.any != nullptr ? given.any->kind : static_cast<uint32_t>(TN_KIND_TENSOR);
  const bool optional = info.kind == TN_KIND_OPTIONAL || info.kind == TN_KIND_OPTIONAL_SEQUENCE;
  if (info.kind != TN_KIND_NONE && kind != info.kind && !optional) {
    found.error("", place, fmt::format("is {}; expected {}", kind_text(kind), kind_text(info.kind)));
    return;
  }
  if (kind != TN_KIND_TENSOR) return;
  const tn_tensor tensor = given.any != nullptr ? given.any->tensor() : given.tensor;
  if (info.dtype != TN_DTYPE_NONE && tensor.dtype != info.dtype) {
    found.error("", place,
                fmt::format("has elements of type {}; expected {}", dtype_name(tensor.dtype),
                            dtype_name(info.dtype)));
  }
  const std::span<const int64_t> dims(tensor.dims, static_cast<size_t>(std::max(tensor.rank, 0)));
  uint64_t bytes = 0;
  if (!tensor_bytes(tensor.dtype, dims, &bytes)) {
    found.error(
        "", place,
        fmt::format("has shape {}, whose size overflows or is negative; give a real shape", dims_text(dims)));
    return;
  }
  if (tensor.bytes != bytes || (tensor.data == nullptr && bytes != 0)) {
    found.error("", place,
                fmt::format("has {} bytes of data for shape {}; expected {}",
                            tensor.data == nullptr ? 0 : tensor.bytes, dims_text(dims), bytes));
    return;
  }
  if (!info.rank_known) return;
  if (dims.size() != detail.dims.size()) {
    found.error("", place,
                fmt::format("has rank {} (shape {}); expected rank {} (shape {})", dims.size(),
                            dims_text(dims), detail.dims.size(), declared_shape(input)));
    return;
  }
  for (size_t d = 0; d < dims.size(); ++d) {
    const Dim& dim = detail.dims[d];
    if (dim.number >= 0 && dims[d] != dim.number) {
      found.error("", place,
                  fmt::format("dimension {} is {}; expected {} (shape {})", d, dims[d], dim.number,
                              declared_shape(input)));
    } else if (dim.number < 0 && (dims[d] < dim.lo || dims[d] > dim.hi)) {
      found.error("", place,
                  fmt::format("dimension {} ({}) is {}; expected {}..{}", d, info.dims[d], dims[d], dim.lo,
                              dim.hi == INT64_MAX ? std::string("any") : std::to_string(dim.hi)));
    } else if (dim.symbol >= 0) {
      int64_t& known = bound[static_cast<size_t>(dim.symbol)];
      std::string& by = bound_by[static_cast<size_t>(dim.symbol)];
      if (known < 0) {
        known = dims[d];
        by = fmt::format("dimension {} of input '{}'", d, info.name);
      } else if (known != dims[d]) {
        found.error("", place,
                    fmt::format("dimension {} ({}) is {}; expected {}, as {} is", d, info.dims[d], dims[d],
                                known, by));
      }
    }
  }
}

void InputChecker::check(std::span<const NamedTensor> given, std::vector<int>* order) const {
  order->assign(inputs_.size(), -1);
  Diagnostics found;
  std::vector<int64_t> bound(symbols_.size(), -1);
  std::vector<std::string> bound_by(symbols_.size());
  for (size_t i = 0; i < given.size(); ++i) {
    const auto input = by_name_.find(given[i].name);
    if (input == by_name_.end()) {
      std::vector<std::string> names;
      for (const InputInfo& info : inputs_) names.push_back(info.name);
      const std::string guess = did_you_mean(given[i].name, names);
      found.error("", "input '" + std::string(given[i].name) + "'",
                  "the model has no such input" +
                      (guess.empty() ? "; it has: " + (names.empty() ? "none" : join(names, ", ")) : guess));
      continue;
    }
    if ((*order)[input->second] >= 0) {
      found.error("", "input '" + std::string(given[i].name) + "'", "is given twice; give it once");
      continue;
    }
    (*order)[input->second] = static_cast<int>(i);
  }
  for (size_t input = 0; input < inputs_.size(); ++input) {
    const int number = (*order)[input];
    if (number >= 0) {
      check_one(input, given[static_cast<size_t>(number)], bound, bound_by, found);
    } else if (!inputs_[input].optional && inputs_[input].kind != TN_KIND_OPTIONAL &&
               inputs_[input].kind != TN_KIND_OPTIONAL_SEQUENCE) {
      found.error(
          "", "input '" + inputs_[input].name + "'",
          fmt::format("is missing; expected {} {}", dtype_name(inputs_[input].dtype), declared_shape(input)));
    }
  }
  found.throw_if_errors(exit_bad_input);
}

}  // namespace tenon
