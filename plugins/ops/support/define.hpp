// What the families share: defining, reading known contents, checking attributes, and rewriting.
//
// Inference rules that hold in every family:
//  - An operand of unknown rank or type gives a result of unknown rank, never a guess and never a failure.
//  - Dims are combined through Infer. A result's dim is a number whenever all that it depends on is known.
//  - A wrong node ends in fail(): which operand or attribute, what was found, what was expected.
//  - Known contents are exact: where a number leaves its type's range, the contents are unknown.
#pragma once
#include "schema/schema_table.hpp"

namespace tenon::ops {

using namespace tenon::sdk;

/// Known contents larger than this are not tracked (the host's bound).
inline constexpr int64_t max_known = 4096;

// ---- defining
// -------------------------------------------------------------------------------------------------------

/// The upgrade of an operator whose older versions mean the same today.
void upgrade_version_only(Editor& e, const Node& n);
/// Begins an operator of ONNX from its row; the upgrade is upgrade_version_only until the family names
/// another.
OpBuilder& define(Plugin& p, const char* name, const char* domain = "");

// ---- types and attributes
// -------------------------------------------------------------------------------------------

/// The element type with the number that ONNX gives it (attributes `to`, `dtype`, ...); Failure for others.
tn_dtype dtype_of_onnx(int64_t number, const char* attribute);
int64_t onnx_of_dtype(tn_dtype dtype);

/// Fails with `message` unless `good`.
inline void require(bool good, const std::string& message) {
  if (!good) fail(message);
}
std::string text_of(int64_t v);
/// Operand i has a rank in [low, high] if it is known; false when it is not known.
bool ranked(Infer& c, uint32_t i, const char* name, int32_t low, int32_t high = INT32_MAX);
/// Operand i, where it is there, is one number: a scalar, or a list of one.
void one_number(Infer& c, uint32_t i, const char* name);
/// The integers of a list attribute: `count` of them, each in [low, high]; `otherwise` for all when it is
/// absent.
Dims list_attr(Infer& c, const char* name, size_t count, int64_t otherwise, int64_t low,
               int64_t high = INT32_MAX);
/// The value of a required integer attribute.
int64_t required_int(const Attributes& a, const char* name);
/// Result i has the type of operand j.
void same_type(Infer& c, uint32_t i, uint32_t j);
/// Result i has the shape of operand j.
void same_shape(Infer& c, uint32_t i, uint32_t j, tn_dtype dtype);

// ---- known contents
// -------------------------------------------------------------------------------------------------

/// A tensor of integers or bools all of whose elements are known (numbers or expressions) and whose dims are
/// numbers.
struct Known {
  Dims dims;
  std::vector<tn_dim> at;  // row-major
};
std::optional<Known> known(Infer& c, uint32_t i);
/// Elements of operand i; float tensors too, when all are whole numbers.
std::optional<std::vector<tn_dim>> whole_elements(Infer& c, uint32_t i);
/// Numbers of operand i, a list such as axes: of rank 0 or 1, or it fails. Unset when they are not known.
std::optional<Dims> integer_list(Infer& c, uint32_t i, const char* name);
/// One number of operand i of any number type.
std::optional<double> scalar_value(Infer& c, uint32_t i);
/// The floats of operand i when they are constant or computed already.
std::optional<std::vector<double>> float_list(Infer& c, uint32_t i);
/// Sets result i's elements if there are not too many.
void set_known(Infer& c, uint32_t i, const std::vector<tn_dim>& elements);
/// v, when it is a number that the element type can hold.
std::optional<tn_dim> fit(Infer& c, tn_dtype dtype, tn_dim v);
/// dims as numbers, if all are.
std::optional<Dims> numbers(Infer& c, Span<const tn_dim> dims);
/// Product of numbers; unset beyond `limit`.
std::optional<int64_t> count_up_to(const Dims& dims, int64_t limit);
/// Which element of the operand of shape `from` stands at every place of `to` (from broadcasts to it).
std::vector<int64_t> broadcast_index(const Dims& from, const Dims& to);
inline bool at_most(Infer& c, tn_dim a, tn_dim b) { return a == b || c.compare(TN_DIM_LE, a, b) == TN_YES; }
/// min and max that answer one of the two where the ranges decide.
tn_dim least(Infer& c, tn_dim a, tn_dim b);
tn_dim most(Infer& c, tn_dim a, tn_dim b);
/// Shape of the elements that two shapes broadcast to; unset when a rank is unknown.
std::optional<std::vector<tn_dim>> broadcast_inputs(Infer& c, uint32_t first, uint32_t last);

// ---- rewriting
// ------------------------------------------------------------------------------------------------------

/// Builds nodes before an older node, or one to be decomposed, and puts them in its place.
class Rewrite {
 public:
  Rewrite(Editor& e, const Node& n);
  Editor& editor() { return e_; }
  tn_node id() const { return id_; }
  tn_value input(size_t i) const { return i < inputs_.size() ? inputs_[i] : TN_NONE; }
  const std::vector<tn_value>& inputs() const { return inputs_; }
  tn_value output(size_t i) const { return i < outputs_.size() ? outputs_[i] : TN_NONE; }
  size_t output_count() const { return outputs_.size(); }
  /// Someone reads result i.
  bool used(size_t i) const;

  tn_value make(std::string_view op, std::vector<tn_value> inputs, std::vector<AttrValue> attrs = {});
  std::vector<tn_value> make_many(std::string_view op, std::vector<tn_value> inputs,
                                  std::vector<AttrValue> attrs, uint32_t outputs);
  tn_value ints(const std::vector<int64_t>& values) { return e_.vector<int64_t>(values); }
  tn_value one_int(int64_t value) { return e_.scalar<int64_t>(value); }
  /// A scalar of the element type of `like`, whether or not that is known yet.
  tn_value number_like(double value, tn_value like);
  /// Also before inference: found through the operators that make v.
  tn_dtype dtype(tn_value v) const;
  /// -1 when not known.
  int32_t rank(tn_value v) const;
  /// In an upgrade: declines while v has not been inferred yet, so that the host asks again later. -1: never
  /// known.
  int32_t rank_or_wait(tn_value v) const;
  /// All uses of result i read v.
  void become(size_t i, tn_value v);
  /// After become of all: removes the node (an upgrade's duty; after a decomposition the host does it).
  void erase() { e_.erase(id_); }
  /// The node stays: it has the newest version now.
  void finish();

 private:
  Editor& e_;
  tn_node id_;
  tn_region region_;
  int32_t since_ = 0;
  std::vector<tn_value> inputs_, outputs_;
};

/// Removes an attribute if the node has it.
void drop_attr(Editor& e, const Node& n, const char* name);
/// What this version says cannot be said today.
[[noreturn]] void cannot_upgrade(const Node& n, const std::string& why);
/// "The node's ... " as the start of a message.
std::string label_of(const Node& n);

}  // namespace tenon::ops
