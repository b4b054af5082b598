// A rule as the loader leaves it: names are numbers, expressions are parsed, operators are symbols.
#pragma once
#include <memory>
#include <optional>

#include "gx/gx.hpp"
#include "load/json_source.hpp"
#include "tenon/abi/graph.h"
#include "tenon/abi/ops.h"
#include "tenon/abi/rule_engine.h"
#include "tenon/abi/transforms.h"

namespace tenon::rules {

constexpr uint32_t none = UINT32_MAX;
constexpr size_t max_variants = 64;
constexpr uint32_t max_leaves = 64;  // of an assoc tree whose operands are a list

/// A constant transform that a plugin exports, and what its function takes.
struct Transform {
  const tn_transform* record = nullptr;
  void* instance = nullptr;
};

/// The operators there are, as the rules see them.
class OpCatalog {
 public:
  virtual ~OpCatalog() = default;
  virtual tn_sym symbol(std::string_view text) const = 0;
  virtual std::string_view text(tn_sym symbol) const = 0;
  /// How many operators the name stands for: 0, 1 (then *op is it), or more.
  virtual int resolve(std::string_view name, tn_sym* op) const = 0;
  virtual const tn_op_def* find(tn_sym op) const = 0;
  virtual std::vector<std::string_view> names() const = 0;
  /// The plugin, installed and not loaded, that defines an operator. May be empty.
  virtual std::string provider(std::string_view /*op*/) const { return {}; }
  /// The constant transforms of all plugins.
  virtual std::vector<Transform> transforms() const { return {}; }
};

/// The name as the constraint `X_type` of the articles' form says it, without its domain: LeakyRelu is
/// leaky_relu.
std::string snake_case(std::string_view op);

struct Scalar {
  bool is_text = false;
  double number = 0;
  std::string text;
};

/// A wanted value: one of a list, a range, not one value.
struct Predicate {
  std::vector<Scalar> one_of;
  std::optional<double> min, max;
  std::optional<Scalar> differs;
  bool empty() const { return one_of.empty() && !min && !max && !differs; }
  bool number(double v) const;
  bool text(std::string_view v) const;
  std::string show() const;
};

struct AttributeWish {
  std::string name;
  tn_sym symbol = 0;
  Predicate wish;
};

struct Slot {
  enum Kind : uint8_t { Value, Any, Rest } kind = Any;  // Rest: "...name", a list
  bool optional = false;
  bool constant = false;        // must be a constant
  uint32_t value = none;        // into Rule::values; none for an unnamed literal
  std::vector<double> literal;  // the wanted elements, when any
  double rtol = -1, atol = 0;   // rtol < 0: by the stored type
};

/// One operator (or a set of them, alike) with its operands.
struct Alternative {
  std::vector<tn_sym> ops;
  std::vector<Slot> in;
  bool any_operands = false;  // nothing was said about operands
  std::vector<AttributeWish> attrs;
};

struct PatternNode {
  uint32_t node = none;  // into Rule::nodes
  std::vector<Alternative> alternatives;
  std::vector<uint32_t> out;  // values; none: "_"
  bool optional = false, assoc = false;
  std::optional<bool> commute;
  int32_t since = 0, until = 0;
  uint32_t chain = none;  // chains: the value that feeds slot 0, or any slot when commutative
  uint32_t repeat_min = 1, repeat_max = 1;
  bool repeat = false;  // "repeat" was written: "...name" collects one operand of each copy
  uint32_t offset = 0;
};

struct DimWish {
  enum Kind : uint8_t { Number, Symbol, Rest } kind = Number;
  int64_t number = 0;
  uint32_t symbol = 0;  // into Rule::symbols
};

enum class Escape : uint8_t { Forbid, Keep, Expose };

struct ValueWish {
  uint32_t value = none;
  bool constant = false, forbid_shared = false;
  Escape escape = Escape::Forbid;
  Predicate dtype, rank;
  std::optional<std::vector<DimWish>> shape;
};

/// A constraint of the articles' form that looks at the whole chain.
struct ChainWish {
  enum Kind : uint8_t { InputDtype, WeightDtype, OutputDtype, Rank, Type, Attribute } kind = Attribute;
  std::string key;
  tn_sym symbol = 0;
  Predicate wish;
};

struct Pattern {
  std::string id;  // of an alternative, for messages
  std::vector<PatternNode> nodes;
  std::vector<ValueWish> values;
  std::vector<uint32_t> outputs;
  std::vector<ChainWish> chain_wishes;
  uint32_t offset = 0;
};

struct Expression {
  gx::Program program;
  uint32_t offset = 0;  // of the JSON string
};

struct Guard {
  Expression expr;
  std::string why;
  bool accept_unknown = false;
};

struct Let {
  std::string name;
  Expression expr;  // unless a transform makes it
  Transform transform;
  std::vector<Expression> args;  // in the order of the transform's parameters; empty: left out
  std::string source;            // for messages
};

/// What an operand of a replacement may be.
struct NameRef {
  enum Kind : uint8_t { Value, Let, Made } kind = Value;
  uint32_t index = 0;  // Made: into Replacement::made
};

struct NewOperand {
  std::vector<NameRef> choices;  // the first bound one
  bool optional = false;         // nothing bound: left out
  bool list = false;             // "...name": all of a list
};

struct NewResult {
  uint32_t value = none;  // a value of the pattern
  uint32_t made = none;   // or a new one
  bool optional = false;  // only when somebody outside reads it
};

struct NewAttribute {
  std::string name;
  Expression expr;                // when it is text
  const Json* literal = nullptr;  // else; lives as long as the source
};

struct NewNode {
  std::string name;
  tn_sym op = 0;
  uint32_t op_of = none;  // "$act": the operator that node of the pattern matched
  std::vector<NewOperand> in;
  std::vector<NewResult> out;
  std::vector<uint32_t> copy_attrs;
  std::vector<NewAttribute> attrs;
  uint32_t alias_when_absent = none;  // bodies: dropped when that node is absent
  uint32_t offset = 0;
};

struct Replacement {
  std::vector<NewNode> nodes;
  std::vector<std::string> made;  // names that are no values of the pattern
  enum BodyKind : uint8_t { NoBody, Origin, Explicit } body = NoBody;
  std::vector<NewNode> body_nodes;
  std::vector<std::string> needs_kernel;
  bool chain = false;  // the articles' form: operands, results and attributes follow from the match
};

struct Tolerance {
  double rtol = 1e-4, atol = 1e-5, cos = -1, max_ulp = -1;
};

struct VerifyCase {
  const Json* json = nullptr;  // as written
  std::string why;
};

struct Verify {
  bool given = false;
  int64_t trials = 3, seed = 1;
  std::vector<std::pair<std::string, std::string>> inputs;  // name or "*", distribution
  std::vector<VerifyCase> cases, must_not_fire;
  std::vector<std::pair<tn_dtype, Tolerance>> tolerance;
};

enum class Stage : uint8_t { Canonicalize, Fuse, Layout, Device };
enum class Precision : uint8_t { Exact, Reassoc, Approx };

struct Rule {
  std::string name, doc, switch_name;
  std::vector<std::string> aliases, before, after;
  bool enabled = true, once = false;
  int64_t version = 1;
  int32_t level = 2, priority = 7000;
  Stage stage = Stage::Fuse;
  Precision precision = Precision::Reassoc;
  std::vector<std::string> values, nodes, symbols;  // names of what the patterns number
  std::vector<bool> lists;                          // per value: bound by "...name"; may be shorter
  std::vector<Pattern> patterns;
  std::vector<Guard> where;
  std::vector<Let> lets;
  Replacement replace;
  Expression gain;
  double min_gain = 0, max_const_growth = 1.1;
  enum Measure : uint8_t { MeasureOff, MeasureAuto, MeasureAlways } measure = MeasureOff;
  Verify verify;
  std::string names_chain;  // a bare chain: "matmul+add+layernorm" switches on the rule with that alias
  const Source* source = nullptr;
  std::shared_ptr<const Json> derived;  // the tree it was read from, where that is not the file's own
  uint32_t offset = 0;

  bool is_list(uint32_t value) const { return value < lists.size() && lists[value]; }
};

const char* stage_name(Stage stage);
const char* precision_name(Precision precision);

}  // namespace tenon::rules
