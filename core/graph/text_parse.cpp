// Reading the text form: a hand-written scanner, a statement at a time; open regions are on an explicit
// stack.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "core/base/tensor.hpp"
#include "core/base/text.hpp"
#include "core/graph/infer.hpp"
#include "core/graph/interner.hpp"
#include "core/graph/text_codec.hpp"
#include "core/graph/text_form.hpp"
#include "core/graph/text_scanner.hpp"

namespace tenon {

namespace {
tn_str abi(const std::string& text) { return {text.data(), text.size()}; }

// Owns what a parsed attribute points at.
struct ParsedAttr {
  tn_attr attr{};
  std::string text;
  std::vector<int64_t> ints;
  std::vector<double> floats;
  std::vector<std::string> texts;
  std::vector<tn_str> views;
  Tensor tensor;
  tn_tensor tensor_view{};
  std::vector<int64_t> dims;
  tn_type type{};
};

class Parser {
 public:
  Parser(std::string_view text, const OpRegistry* registry) : in_(text), graph_(std::make_unique<Graph>()) {
    graph_->set_registry(registry);
  }

  std::unique_ptr<Graph> run(Diagnostics& diagnostics) {
    try {
      {
        Transaction build(*graph_, "text", TN_EDIT_BUILD);
        edit_ = build.get();
        in_.expect_word("graph");
        name_ = in_.string();
        in_.expect("{");
        open_.push_back({Graph::main_region, {}, {}, TN_NONE});
        while (!open_.empty()) statement();
        if (!in_.at_end()) in_.fail("text after the end of the graph");
        set_main_name();
        Diagnostics found;
        if (!build.commit(found)) {
          diagnostics.append(found);
          return nullptr;
        }
      }
      // Types in text are facts, not hints.
      Transaction facts(*graph_, "text", TN_EDIT_NO_INFER);
      for (auto& [value, type, dims] : types_) {
        type.dims = dims.data();
        edit_api()->set_type(facts.get(), value, &type);
      }
      if (!facts.commit(diagnostics)) return nullptr;
      graph_->set_edit_limit(UINT64_MAX);
      return std::move(graph_);
    } catch (const ScanError& error) {
      diagnostics.error("G320", fmt::format("{}:{}", error.line, error.column), error.text);
      return nullptr;
    } catch (const Error& error) {
      for (const auto& finding : error.diagnostics) diagnostics.add(finding);
      return nullptr;
    }
  }

 private:
  struct Open {
    tn_region region;
    std::vector<tn_value> outputs;
    std::vector<std::string> output_names;
    tn_node owner = TN_NONE;  // set: this is the body of a node statement, holding region blocks
  };
  struct TypedValue {
    tn_value value;
    tn_type type;
    std::vector<tn_dim> dims;
  };

  void statement() {
    in_.begin_statement();
    if (open_.back().owner != TN_NONE) return body_statement();
    if (in_.take("}")) return close_region();
    if (in_.peek() == '%' || in_.peek() == '_' || in_.peek() == '(') return node_statement();
    const std::string word = in_.word();
    if (word == "opset") {
      const std::string domain = in_.string();
      edit_api()->set_opset(edit_, abi(domain), static_cast<int32_t>(in_.integer()));
    } else if (word == "metadata") {
      const std::string key = in_.string(), text = in_.string();
      edit_api()->set_metadata(edit_, abi(key), abi(text));
    } else if (word == "symbol") {
      const std::string symbol = in_.string();
      const int64_t lo = in_.integer();
      const int64_t hi = in_.take("*") ? TN_DIM_MAX : in_.integer();
      graph_->symbols().set_range(graph_->symbols().named(symbol), lo, hi);
    } else if (word == "input") {
      input_statement();
    } else if (word == "const") {
      const_statement();
    } else if (word == "output") {
      Open& open = open_.back();
      open.outputs.push_back(known_value());
      in_.expect_word("as");
      open.output_names.push_back(in_.string());
    } else {
      in_.fail("'" + word +
               "' begins no statement; expected opset, metadata, symbol, const, input, output or a node");
    }
  }

  void body_statement() {
    if (in_.take("}")) {
      open_.pop_back();
      return;
    }
    in_.expect_word("region");
    const std::string name = in_.string();
    in_.expect("{");
    tn_region region = TN_NONE;
    if (edit_api()->create_region(edit_, open_.back().owner, abi(name), &region) != TN_OK)
      in_.fail("a region cannot be made here: nested too deep");
    open_.push_back({region, {}, {}, TN_NONE});
  }

  void close_region() {
    Open open = std::move(open_.back());
    open_.pop_back();
    edit_api()->region_outputs(edit_, open.region, open.outputs.data(),
                               static_cast<uint32_t>(open.outputs.size()));
    for (uint32_t i = 0; i < open.output_names.size(); ++i)
      edit_api()->region_output_name(edit_, open.region, i, abi(open.output_names[i]));
  }

  void set_main_name() { graph_->set_graph_name(name_); }

  std::string value_name() {
    in_.expect("%");
    return in_.peek() == '"' ? in_.string() : in_.word();
  }
  tn_value known_value() {
    const std::string name = value_name();
    const tn_value value = graph_->find_value(name, open_.back().region);
    if (value == TN_NONE) in_.fail("'" + name + "' is not defined before this place");
    return value;
  }

  tn_type type(std::vector<tn_dim>& dims) {
    tn_type result{TN_KIND_TENSOR, TN_DTYPE_NONE, -1, 0, nullptr};
    int closing = 0;
    if (in_.take_word("optional")) {
      in_.expect("(");
      ++closing;
      result.kind = TN_KIND_OPTIONAL;
    }
    if (in_.take_word("seq")) {
      in_.expect("(");
      ++closing;
      result.kind = result.kind == TN_KIND_OPTIONAL ? TN_KIND_OPTIONAL_SEQUENCE : TN_KIND_SEQUENCE;
    }
    if (!in_.take("?")) {
      std::string name = in_.word();
      if (const size_t colon = name.rfind(':'); colon != std::string::npos) {
        result.encoding = intern(name.substr(0, colon));
        name.erase(0, colon + 1);
      }
      const auto dtype = dtype_from_name(name);
      if (!dtype && name != "?")
        in_.fail("'" + name + "' is no element type; expected float32, int64, string or another");
      if (dtype) result.dtype = *dtype;
    } else if (closing == 0 && in_.peek() != '[') {
      return {TN_KIND_NONE, TN_DTYPE_NONE, -1, 0, nullptr};
    }
    in_.expect("[");
    if (in_.take("*")) {
      in_.expect("]");
    } else {
      for (bool first = true; !in_.take("]"); first = false) {
        if (!first) in_.expect(",");
        const std::string text = in_.dimension();
        const auto dim = graph_->symbols().parse(text);
        if (!dim) in_.fail("'" + text + "' is no dimension");
        dims.push_back(*dim);
      }
      result.rank = static_cast<int32_t>(dims.size());
    }
    for (; closing > 0; --closing) in_.expect(")");
    result.dims = dims.data();
    return result;
  }

  void input_statement() {
    const std::string name = value_name();
    std::vector<tn_dim> dims;
    tn_type declared{TN_KIND_NONE, TN_DTYPE_NONE, -1, 0, nullptr};
    if (in_.take(":")) declared = type(dims);
    tn_value value = TN_NONE;
    if (edit_api()->region_input(edit_, open_.back().region, abi(name), &declared, &value) != TN_OK)
      in_.fail_statement("input '" + name + "' is defined twice");
    if (in_.take_word("default")) edit_api()->input_default(edit_, value, known_value());
  }

  void const_statement() {
    const std::string name = value_name();
    in_.expect(":");
    std::vector<tn_dim> dims;
    const tn_type declared = type(dims);
    in_.expect("=");
    tn_value value = TN_NONE;
    if (in_.take_word("uniform")) {
      const Tensor element = contents(declared.dtype, {});
      tn_tensor tensor = element.view();
      tensor.rank = declared.rank;
      tensor.dims = dims.data();
      edit_api()->constant_uniform(edit_, abi(name), &tensor, &value);
    } else {
      if (in_.peek() == '#')
        in_.fail("the bytes of '" + name +
                 "' were left out of this text, so it cannot be read back; print it with its bytes");
      const Tensor tensor = contents(declared.dtype, dims);
      const tn_tensor view = tensor.view();
      edit_api()->constant_copy(edit_, abi(name), &view, &value);
    }
    if (value == TN_NONE)
      in_.fail_statement("constant '" + name + "' was refused: its type and contents do not fit");
    if (graph_->name(value) != name) in_.fail_statement("'" + name + "' is defined twice");
  }

  // Elements as literals or base64.
  Tensor contents(tn_dtype dtype, const std::vector<int64_t>& dims) {
    uint64_t bytes = 0;
    for (const int64_t dim : dims)
      if (dim < 0) in_.fail("a constant's dimensions are numbers");
    if (!tensor_bytes(dtype, dims, &bytes)) in_.fail("this type has no size");
    if (in_.take_word("base64")) {
      std::string decoded;
      if (!decode_base64(in_.string(), &decoded) || decoded.size() != bytes || dtype == TN_STRING)
        in_.fail(fmt::format("expected {} bytes in base64 for this type and shape", bytes));
      Tensor tensor(dtype, dims);
      std::memcpy(tensor.data(), decoded.data(), decoded.size());
      return tensor;
    }
    // Counted before anything is allocated: the text must hold what the shape promises.
    std::vector<std::string> literals;
    in_.expect("[");
    for (bool first = true; !in_.take("]"); first = false) {
      if (!first) in_.expect(",");
      literals.push_back(in_.peek() == '"' ? in_.string() : in_.number_text());
    }
    uint64_t count = 0;
    element_count(dims, &count);
    if (literals.size() != count)
      in_.fail(fmt::format("{} elements for a shape that has {}", literals.size(), count));
    Tensor tensor(dtype, dims);
    for (uint64_t i = 0; i < count; ++i) store(tensor, i, literals[i]);
    return tensor;
  }

  template <class T>
  void put(Tensor& tensor, uint64_t i, T value) {
    std::memcpy(static_cast<char*>(tensor.data()) + i * sizeof(T), &value, sizeof(T));
  }
  template <class T>
  void put_integer(Tensor& tensor, uint64_t i, const std::string& literal) {
    const int64_t value = to_integer(literal);
    if (value < int64_t(std::numeric_limits<T>::min()) || value > int64_t(std::numeric_limits<T>::max()))
      in_.fail(literal + " does not fit the element type");
    put(tensor, i, static_cast<T>(value));
  }
  void store(Tensor& tensor, uint64_t i, const std::string& literal) {
    switch (tensor.dtype()) {
      case TN_FLOAT32:
        put(tensor, i, std::strtof(literal.c_str(), nullptr));
        break;
      case TN_FLOAT64:
        put(tensor, i, std::strtod(literal.c_str(), nullptr));
        break;
      case TN_INT64:
        put_integer<int64_t>(tensor, i, literal);
        break;
      case TN_INT32:
        put_integer<int32_t>(tensor, i, literal);
        break;
      case TN_INT16:
        put_integer<int16_t>(tensor, i, literal);
        break;
      case TN_INT8:
        put_integer<int8_t>(tensor, i, literal);
        break;
      case TN_UINT8:
        put_integer<uint8_t>(tensor, i, literal);
        break;
      case TN_BOOL:
        put<uint8_t>(tensor, i, literal == "true" || literal == "1");
        break;
      case TN_STRING:
        tensor.set_string(i, literal);
        break;
      default:
        in_.fail("elements of this type are written in base64");
    }
  }
  int64_t to_integer(const std::string& literal) {
    char* end = nullptr;
    errno = 0;
    const long long value = std::strtoll(literal.c_str(), &end, 10);
    if (errno != 0 || *end != 0 || literal.empty()) in_.fail("'" + literal + "' is no integer");
    return value;
  }

  void attribute(ParsedAttr& parsed) {
    const std::string name = in_.peek() == '"' ? in_.string() : in_.word();
    parsed.attr.name = intern(name);
    in_.expect("=");
    tn_attr& attr = parsed.attr;
    if (in_.take_word("tensor")) {
      const tn_type declared = type(parsed.dims);
      parsed.tensor = contents(declared.dtype, parsed.dims);
      parsed.tensor_view = parsed.tensor.view();
      attr.kind = TN_ATTR_TENSOR;
      attr.u.tensor = &parsed.tensor_view;
    } else if (in_.take_word("type")) {
      parsed.type = type(parsed.dims);
      attr.kind = TN_ATTR_TYPE;
      attr.u.type = &parsed.type;
    } else if (in_.peek() == '"') {
      parsed.text = in_.string();
      attr.kind = TN_ATTR_STRING;
      attr.u.s = abi(parsed.text);
    } else if (in_.take_word("ints")) {
      list(parsed, TN_ATTR_INTS);
    } else if (in_.take_word("floats")) {
      list(parsed, TN_ATTR_FLOATS);
    } else if (in_.take_word("strings")) {
      list(parsed, TN_ATTR_STRINGS);
    } else if (in_.peek() == '[') {
      list(parsed, 0);
    } else {
      const std::string literal = in_.number_text();
      if (is_float_literal(literal)) {
        attr.kind = TN_ATTR_FLOAT;
        attr.u.f = std::strtod(literal.c_str(), nullptr);
      } else {
        attr.kind = TN_ATTR_INT;
        attr.u.i = to_integer(literal);
      }
    }
  }

  static bool is_float_literal(const std::string& literal) {
    return literal.find_first_of(".ena") != std::string::npos;
  }

  void list(ParsedAttr& parsed, uint32_t kind) {
    in_.expect("[");
    std::vector<std::string> literals;
    for (bool first = true; !in_.take("]"); first = false) {
      if (!first) in_.expect(",");
      if (in_.peek() == '"') {
        kind = TN_ATTR_STRINGS;
        literals.push_back(in_.string());
      } else {
        literals.push_back(in_.number_text());
        if (kind == 0) kind = is_float_literal(literals.back()) ? TN_ATTR_FLOATS : TN_ATTR_INTS;
      }
    }
    parsed.attr.kind = kind == 0 ? uint32_t(TN_ATTR_INTS) : kind;
    parsed.attr.count = literals.size();
    for (const auto& literal : literals) {
      if (kind == TN_ATTR_FLOATS)
        parsed.floats.push_back(std::strtod(literal.c_str(), nullptr));
      else if (kind != TN_ATTR_STRINGS)
        parsed.ints.push_back(to_integer(literal));
    }
    if (kind == TN_ATTR_STRINGS) parsed.texts = std::move(literals);
    for (const auto& text : parsed.texts) parsed.views.push_back(abi(text));
    static const int64_t none[1] = {};
    if (parsed.attr.count == 0)
      parsed.attr.u.ints = none;
    else if (kind == TN_ATTR_FLOATS)
      parsed.attr.u.floats = parsed.floats.data();
    else if (kind == TN_ATTR_STRINGS)
      parsed.attr.u.strings = parsed.views.data();
    else
      parsed.attr.u.ints = parsed.ints.data();
  }

  void node_statement() {
    std::vector<std::string> output_names;
    std::vector<TypedValue> output_types;
    if (in_.take("(")) {
      in_.expect(")");
    } else {
      do {
        if (in_.take("_")) {
          output_names.emplace_back();
          continue;
        }
        output_names.push_back(value_name());
        if (!in_.take(":")) continue;
        TypedValue typed{static_cast<tn_value>(output_names.size() - 1), {}, {}};
        typed.type = type(typed.dims);
        output_types.push_back(std::move(typed));
      } while (in_.take(","));
    }
    in_.expect("=");
    const std::string op = in_.peek() == '"' ? in_.string() : in_.word();
    in_.expect("(");
    std::vector<tn_value> inputs;
    for (bool first = true; !in_.take(")"); first = false) {
      if (!first) in_.expect(",");
      inputs.push_back(in_.take("_") ? TN_NONE : known_value());
    }
    std::vector<std::unique_ptr<ParsedAttr>> attrs;
    // `{` on the same statement begins attributes, unless a region or the node's end follows it.
    if (in_.peek() == '{' && !in_.brace_opens_body()) {
      in_.expect("{");
      for (bool first = true; !in_.take("}"); first = false) {
        if (!first) in_.expect(",");
        attrs.push_back(std::make_unique<ParsedAttr>());
        attribute(*attrs.back());
      }
    }
    tn_node_desc desc{};
    desc.size = sizeof desc;
    std::string name;
    std::vector<std::string> origins;
    if (in_.take_word("version")) desc.op_version = static_cast<int32_t>(in_.integer());
    if (in_.take_word("name")) name = in_.string();
    if (in_.take_word("origin")) {
      do origins.push_back(in_.string());
      while (in_.take(","));
    }
    desc.op = intern(op);
    desc.region = open_.back().region;
    desc.before = TN_NONE;
    desc.name = abi(name);
    desc.inputs = inputs.data();
    desc.input_count = static_cast<uint32_t>(inputs.size());
    std::vector<tn_attr> plain;
    for (const auto& attr : attrs) plain.push_back(attr->attr);
    desc.attrs = plain.data();
    desc.attr_count = static_cast<uint32_t>(plain.size());
    std::vector<tn_str> outputs;
    for (const auto& text : output_names) outputs.push_back(text.empty() ? tn_str{nullptr, 0} : abi(text));
    desc.output_names = outputs.data();
    desc.output_count = static_cast<uint32_t>(outputs.size());
    tn_node node = TN_NONE;
    if (edit_api()->create_node(edit_, &desc, &node) != TN_OK)
      in_.fail_statement(
          "this node was refused: one of its results is already defined (single static assignment), or an "
          "operand or attribute is malformed");
    if (!origins.empty()) graph_->set_origin_names(node, origins);
    for (auto& typed : output_types) {
      typed.value = graph_->node(node).output(typed.value);
      types_.push_back(std::move(typed));
    }
    if (in_.take("{")) open_.push_back({Graph::main_region, {}, {}, node});
  }

  Scanner in_;
  std::unique_ptr<Graph> graph_;
  tn_edit* edit_ = nullptr;
  std::string name_;
  std::vector<Open> open_;
  std::vector<TypedValue> types_;
};
}  // namespace

std::unique_ptr<Graph> parse(std::string_view text, const OpRegistry* registry, Diagnostics& diagnostics) {
  return Parser(text, registry).run(diagnostics);
}

}  // namespace tenon
