// Values of gx. Numbers are float64; an unknown value carries the reason, which the user gets to read.
#pragma once
#include <memory>

#include "tenon/sdk/graph.hpp"

namespace tenon::rules::gx {

/// A computed tensor. The elements are shared until somebody writes.
struct Tensor {
  std::vector<int64_t> dims;
  std::shared_ptr<std::vector<double>> data = std::make_shared<std::vector<double>>();
  tn_dtype dtype = TN_FLOAT64;  // what it will be stored as; cast() sets it
  int64_t count() const { return static_cast<int64_t>(data->size()); }
  /// Elements that may be written: a copy when others read them too.
  std::vector<double>& own() {
    if (data.use_count() > 1) data = std::make_shared<std::vector<double>>(*data);
    return *data;
  }
};

struct Value {
  enum Kind : uint8_t { Absent, Unknown, Bool, Number, Dim, Text, List, Tensor, Graph } kind = Absent;
  bool is_int = false;
  double number = 0;         // Number, Bool (0 or 1)
  tn_dim dim = 0;            // Dim: a symbolic dimension
  tn_value graph = TN_NONE;  // Graph: a value of the graph, read only when needed
  std::string text;          // Text; Unknown: why; Graph: its name in the rule
  std::vector<Value> list;
  gx::Tensor tensor;

  static Value boolean(bool b) {
    Value v;
    v.kind = Bool;
    v.is_int = true;
    v.number = b;
    return v;
  }
  static Value real(double d) {
    Value v;
    v.kind = Number;
    v.number = d;
    return v;
  }
  static Value integer(int64_t i) {
    Value v;
    v.kind = Number;
    v.is_int = true;
    v.number = static_cast<double>(i);
    return v;
  }
  static Value string(std::string_view s) {
    Value v;
    v.kind = Text;
    v.text = std::string(s);
    return v;
  }
  static Value unknown(std::string why) {
    Value v;
    v.kind = Unknown;
    v.text = std::move(why);
    return v;
  }
  static Value items(std::vector<Value> l) {
    Value v;
    v.kind = List;
    v.list = std::move(l);
    return v;
  }
  static Value of(gx::Tensor t) {
    Value v;
    v.kind = Tensor;
    v.tensor = std::move(t);
    return v;
  }
  static Value of_graph(tn_value g, std::string_view name) {
    Value v;
    v.kind = Graph;
    v.graph = g;
    v.text = std::string(name);
    return v;
  }
  static Value ints(sdk::Span<const int64_t> l) {
    Value v;
    v.kind = List;
    for (int64_t i : l) v.list.push_back(integer(i));
    return v;
  }
  static Value truth(tn_truth t, const std::string& why) {
    return t == TN_UNKNOWN ? unknown(why) : boolean(t == TN_YES);
  }

  bool is_unknown() const { return kind == Unknown; }
  bool is_number() const { return kind == Number || kind == Bool; }
  /// For messages, short.
  std::string show() const;
};

/// What an evaluation sees of the world. Indices are those of Ref.
class Scope {
 public:
  virtual ~Scope() = default;
  virtual Value value(uint32_t index) = 0;  // Graph or Absent
  virtual Value let(uint32_t index) = 0;
  virtual bool present(uint32_t node) = 0;
  virtual Value attribute(uint32_t node,
                          const std::string& name) = 0;  // effective; Absent when there is none
  virtual std::string op(uint32_t node) = 0;             // "" when the node is absent
  virtual Value axes(uint32_t node) = 0;
  virtual int64_t copies(uint32_t node) = 0;  // in a row; 0: the node is absent
  /// Kind TN_KIND_NONE: nothing known.
  virtual tn_type type(tn_value value) = 0;
  virtual bool constant(tn_value value, tn_tensor* tensor) = 0;
  virtual bool is_constant(tn_value value) = 0;
  /// Contents of a small integer tensor that is not a constant but known all the same.
  virtual bool elements(tn_value value, std::vector<tn_dim>* out) = 0;
  virtual tn_truth compare(tn_dim_relation relation, tn_dim a, tn_dim b) = 0;
  virtual tn_dim combine(tn_dim_op op, tn_dim a, tn_dim b) = 0;
  virtual int64_t least(tn_dim dim) = 0;  // the lower bound
};

/// float64 copy of a tensor's elements; false for types without numbers.
bool load(const tn_tensor& source, Tensor* out);
/// The tensor in its dtype, as the graph stores it.
sdk::OwnedTensor store(const Tensor& tensor);

}  // namespace tenon::rules::gx
