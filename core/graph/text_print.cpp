// Writing the text form. One explicit stack of regions; nothing recurses.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/tensor.hpp"
#include "core/base/text.hpp"
#include "core/graph/infer.hpp"
#include "core/graph/interner.hpp"
#include "core/graph/text_codec.hpp"
#include "core/graph/text_form.hpp"

namespace tenon {

namespace {
constexpr uint64_t inline_elements = 16;

bool is_plain_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '/' || c == '-' || c == ':';
  });
}

std::string name_text(std::string_view name) {
  return is_plain_name(name) ? std::string(name) : quoted(name);
}

std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

template <class T>
T element_at(const tn_tensor& tensor, uint64_t i) {
  T value;
  std::memcpy(&value, static_cast<const char*>(tensor.data) + i * sizeof(T), sizeof(T));
  return value;
}

// Element i as a literal; empty when the type has none that reads back bit for bit.
std::string element_text(const tn_tensor& tensor, uint64_t i) {
  switch (tensor.dtype) {
    case TN_FLOAT32: {
      const float value = element_at<float>(tensor, i);
      if (std::isnan(value)) return {};
      std::string text = std::isinf(value) ? (value < 0 ? "-inf" : "inf") : fmt::format("{}", value);
      if (!std::isinf(value) && text.find_first_of(".e") == std::string::npos) text += ".0";
      return text;
    }
    case TN_FLOAT64: {
      const double value = element_at<double>(tensor, i);
      return std::isnan(value) ? std::string() : float_text(value);
    }
    case TN_INT64:
      return std::to_string(element_at<int64_t>(tensor, i));
    case TN_INT32:
      return std::to_string(element_at<int32_t>(tensor, i));
    case TN_INT16:
      return std::to_string(element_at<int16_t>(tensor, i));
    case TN_INT8:
      return std::to_string(element_at<int8_t>(tensor, i));
    case TN_UINT8:
      return std::to_string(element_at<uint8_t>(tensor, i));
    case TN_BOOL: {
      const uint8_t value = element_at<uint8_t>(tensor, i);
      return value > 1 ? std::string() : value ? "true" : "false";
    }
    case TN_STRING:
      return quoted(view(element_at<tn_str>(tensor, i)));
    default:
      return {};
  }
}

std::string elements_text(const tn_tensor& tensor) {
  uint64_t count = 0;
  element_count({tensor.dims, static_cast<size_t>(std::max(tensor.rank, 0))}, &count);
  if (tensor.dtype == TN_STRING || count <= inline_elements) {
    std::string text = "[";
    bool literal = true;
    for (uint64_t i = 0; i < count && literal; ++i) {
      const std::string element = element_text(tensor, i);
      literal = !element.empty();
      text += (i ? ", " : "") + element;
    }
    if (literal) return text + "]";
  }
  return "base64 \"" + encode_base64(tensor.data, tensor.bytes) + "\"";
}

class Printer {
 public:
  Printer(const Graph& graph, const TextOptions& options) : graph_(graph), options_(options) {}

  std::string run() {
    out_ = "graph " + quoted(graph_.region_name(Graph::main_region)) + " {\n";
    ++indent_;
    for (const auto& [domain, version] : graph_.opsets())
      line(fmt::format("opset {} {}", quoted(domain), version));
    for (const auto& [key, text] : graph_.metadata()) line("metadata " + quoted(key) + " " + quoted(text));
    print_symbols();
    open_.push_back({Graph::main_region, TN_NONE, false});
    while (!open_.empty()) step();
    return std::move(out_);
  }

  void print_one(tn_node node) { print_node_line(node, false); }
  std::string take() { return std::move(out_); }

 private:
  struct Frame {
    tn_region region;
    tn_node next;
    bool started;
  };

  void line(const std::string& text) {
    out_.append(indent_ * 2, ' ');
    out_ += text;
    out_ += '\n';
  }
  std::string value_text(tn_value id) const { return id == TN_NONE ? "_" : "%" + name_text(graph_.name(id)); }
  std::string typed(tn_value id) const {
    return options_.types && graph_.type(id).kind != TN_KIND_NONE
               ? value_text(id) + ": " + type_text(graph_, graph_.type(id))
               : value_text(id);
  }

  // Symbols whose range is not the default, in the order of their making: reading them back needs the range
  // first.
  void print_symbols() {
    for (const auto& [name, range] : graph_.symbols().bounded_symbols()) {
      const std::string hi = range.second == TN_DIM_MAX ? std::string("*") : std::to_string(range.second);
      line(fmt::format("symbol {} {} {}", quoted(name), range.first, hi));
    }
  }

  void step() {
    Frame& frame = open_.back();
    if (!frame.started) {
      frame.started = true;
      frame.next = graph_.first_node(frame.region);
      print_head(frame.region);
      return;
    }
    if (frame.next != TN_NONE) {
      const tn_node node = frame.next;
      frame.next = graph_.next_node(node);
      const auto regions = graph_.node(node).regions();
      print_node_line(node, !regions.empty());
      if (!regions.empty()) {
        ++indent_;
        owners_.push_back(static_cast<uint32_t>(regions.size()));
        for (size_t i = regions.size(); i-- > 0;) open_.push_back({regions[i], TN_NONE, false});
      }
      return;
    }
    const Region& region = graph_.region(frame.region);
    for (uint32_t i = 0; i < region.outputs.size(); ++i)
      line("output " + value_text(region.outputs[i]) + " as " + quoted(graph_.output_name(frame.region, i)));
    --indent_;
    line("}");
    open_.pop_back();
    if (!owners_.empty() && --owners_.back() == 0) {
      owners_.pop_back();
      --indent_;
      line("}");
    }
  }

  void print_head(tn_region id) {
    if (id != Graph::main_region) {
      line("region " + quoted(graph_.region_name(id)) + " {");
      ++indent_;
    }
    const Region& region = graph_.region(id);
    if (id == Graph::main_region) print_constants();
    for (const tn_value input : region.inputs) {
      const tn_value fallback = graph_.default_of(input);
      line("input " + typed(input) + (fallback == TN_NONE ? "" : " default " + value_text(fallback)));
    }
  }

  void print_constants() {
    for (tn_value id = 0; id < graph_.value_bound(); ++id) {
      const Value& value = graph_.value(id);
      if (value.kind != TN_VALUE_CONSTANT || (value.uses.size() == 0 && !value.pinned)) continue;
      line("const " + value_text(id) + ": " + type_text(graph_, graph_.type(id)) + " = " + constant_text(id));
    }
  }

  std::string constant_text(tn_value id) {
    Graph& graph =
        const_cast<Graph&>(graph_);  // contents are looked at lazily and kept; nothing visible changes
    const tn_type& type = graph_.type(id);
    const Constant& record = graph_.constant_record(id);
    uint64_t count = 0;
    element_count({type.dims, static_cast<size_t>(std::max(type.rank, 0))}, &count);
    if (count > inline_elements || record.data == nullptr) {
      if (const void* element = graph.uniform_element(id)) {
        const uint64_t bytes = TN_DTYPE_BITS(type.dtype) < 8 ? 1 : TN_DTYPE_BITS(type.dtype) / 8;
        const tn_tensor one{type.dtype, 0, nullptr, const_cast<void*>(element), bytes};
        return "uniform " + elements_text(one);
      }
      if (!options_.constant_bytes) return "#" + hex64(graph.constant_hash(id));
    }
    tn_tensor tensor{};
    graph.constant(id, &tensor);
    return elements_text(tensor);
  }

  void print_node_line(tn_node id, bool opens) {
    const Node& node = graph_.node(id);
    std::string text;
    for (uint32_t i = 0; i < node.output_count; ++i) {
      if (i != 0) text += ", ";
      text += node.output_data[i] == TN_NONE ? "_" : typed(node.output_data[i]);
    }
    text += node.output_count == 0 ? "() = " : " = ";
    text += name_text(graph_.op_name(id)) + "(";
    for (uint32_t i = 0; i < node.input_count; ++i) text += (i ? ", " : "") + value_text(node.input_data[i]);
    text += ")";
    if (node.attr_count != 0) {
      text += " {";
      for (uint32_t i = 0; i < node.attr_count; ++i) text += (i ? ", " : "") + attr_text(node.attr_data[i]);
      text += "}";
    }
    if (node.op_version != 0) text += fmt::format(" version {}", node.op_version);
    if (!graph_.node_name(id).empty()) text += " name " + quoted(graph_.node_name(id));
    if (options_.origins) {
      const auto origins = graph_.origins(id);
      // A node of the source stands for itself, under its name or its first result's: that need not be said.
      const tn_value first = node.output(0);
      const std::string_view own = !graph_.node_name(id).empty() ? graph_.node_name(id)
                                   : first == TN_NONE            ? std::string_view()
                                                                 : graph_.name(first);
      if (origins.size() != 1 || origins[0] != own)
        for (size_t i = 0; i < origins.size(); ++i) text += (i ? ", " : " origin ") + quoted(origins[i]);
    }
    line(text + (opens ? " {" : ""));
  }

  std::string attr_text(const tn_attr& attr) {
    std::string text = name_text(symbol_text(attr.name)) + " = ";
    const auto list = [&](const char* kind, auto&& element) {
      text += attr.count == 0 ? std::string(kind) + "[" : "[";
      for (uint64_t i = 0; i < attr.count; ++i) text += (i ? ", " : "") + element(i);
      text += "]";
    };
    switch (attr.kind) {
      case TN_ATTR_INT:
        text += std::to_string(attr.u.i);
        break;
      case TN_ATTR_FLOAT:
        text += float_text(attr.u.f);
        break;
      case TN_ATTR_STRING:
        text += quoted(view(attr.u.s));
        break;
      case TN_ATTR_INTS:
        list("ints", [&](uint64_t i) { return std::to_string(attr.u.ints[i]); });
        break;
      case TN_ATTR_FLOATS:
        list("floats", [&](uint64_t i) { return float_text(attr.u.floats[i]); });
        break;
      case TN_ATTR_STRINGS:
        list("strings", [&](uint64_t i) { return quoted(view(attr.u.strings[i])); });
        break;
      case TN_ATTR_TENSOR: {
        const tn_tensor& tensor = *attr.u.tensor;
        const tn_type type{TN_KIND_TENSOR, tensor.dtype, tensor.rank, 0, tensor.dims};
        text += "tensor " + type_text(graph_, type) + " " + elements_text(tensor);
        break;
      }
      case TN_ATTR_TYPE:
        text += "type " + type_text(graph_, *attr.u.type);
        break;
      default:
        text += "0";
        break;
    }
    return text;
  }

  const Graph& graph_;
  const TextOptions& options_;
  std::string out_;
  size_t indent_ = 0;
  std::vector<Frame> open_;
  std::vector<uint32_t> owners_;  // regions still to be printed of each open node
};
}  // namespace

std::string print(const Graph& graph, const TextOptions& options) { return Printer(graph, options).run(); }

std::string print_node(const Graph& graph, tn_node node) {
  const TextOptions options;
  Printer printer(graph, options);
  printer.print_one(node);
  std::string text = printer.take();
  if (!text.empty()) text.pop_back();
  return text;
}

}  // namespace tenon
