// gx, the expression language of rules: guards, computed constants, attribute values. Expressions only: no
// loops, assignments, user functions, input or output. docs/rules.md gives its meaning.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::rules::gx {

enum class Op : uint8_t {
  Number,
  Text,
  Bool,
  Nothing,
  List,
  Name,
  Attribute,
  Call,
  Index,
  Slice,
  Negate,
  Not,
  And,
  Or,
  Add,
  Sub,
  Mul,
  Div,
  FloorDiv,
  Mod,
  Pow,
  Compare,
  If
};
enum class Relation : uint8_t { Eq, Ne, Lt, Le, Gt, Ge, In, NotIn };

constexpr uint32_t none = UINT32_MAX;

/// What a name stands for; the loader fills it in by resolve().
struct Ref {
  enum Kind : uint8_t { Unbound, Value, Let, Node } kind = Unbound;
  uint32_t index = 0;
};

struct Expr {
  Op op = Op::Number;
  bool is_int = false;
  uint16_t column = 0;    // from 0, in the expression's text
  uint16_t function = 0;  // Call: index into functions()
  double number = 0;      // Number, Bool
  std::string text;       // Text, Name, Attribute (its name), Call (its name)
  std::vector<uint32_t>
      args;  // indices; Slice: base, from, to (`none` when left out); If: value, condition, else
  std::vector<Relation> relations;  // Compare: args.size() - 1
  Ref ref;                          // Name, Attribute
};

struct Program {
  std::string source;
  std::vector<Expr> nodes;
  uint32_t root = none;
  bool empty() const { return root == none; }
};

struct Error {
  std::string code;  // E30x
  size_t column = 0;
  std::string message, hint;
};

/// False: errors has what is wrong (syntax: one finding).
bool parse(std::string_view text, Program* program, std::vector<Error>* errors);

/// Names a program may use.
class Names {
 public:
  virtual ~Names() = default;
  virtual Ref find(std::string_view name) const = 0;
  virtual std::vector<std::string_view> all() const = 0;
};
/// Binds names and functions and checks argument counts; appends every fault found.
void resolve(Program* program, const Names& names, std::vector<Error>* errors);

struct Function {
  const char* name;
  uint8_t min_args, max_args;
  bool takes_node;  // its first argument is a node of the pattern
};
const std::vector<Function>& functions();

}  // namespace tenon::rules::gx
