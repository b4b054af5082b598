// Graphs that compute one and the same thing in the many ways exporters write it.
#pragma once
#include <initializer_list>
#include <string>
#include <vector>

namespace tenon::test {

struct Spelling {
  std::string name;   // "div, x*(1+e) first, operands 0110"
  std::string graph;  // the text form
};

/// All ways to write one operator, and what must be left of each.
struct Family {
  std::string name;
  std::string op;                     // what the default pipeline must leave, once
  int nodes = 1;                      // how many nodes are left in all
  size_t count = 0;                   // how many spellings there must be
  std::vector<Spelling> spellings;    // to be raised
  std::vector<Spelling> look_alikes;  // must stay as they are: op does not appear
  double rtol = 1e-4, atol = 1e-5;
};

/// A graph as text, line by line.
class Draft {
 public:
  Draft& number(const std::string& name, double value, const std::string& shape = "");
  Draft& ints(const std::string& name, std::initializer_list<long long> values);
  /// A float constant of varied numbers; with `twin` each run of so many of them comes twice.
  Draft& weights(const std::string& name, const std::string& shape, double scale = 1, double shift = 0,
                 size_t twin = 0);
  Draft& input(const std::string& name, const std::string& shape);
  /// "name = Op(%a, %b) {attributes}"
  Draft& node(const std::string& line);
  std::string finish(std::initializer_list<const char*> outputs = {"z"}) const;

 private:
  std::string head_, body_;
};

/// Op(a, b), or Op(b, a) when swapped.
std::string call(const std::string& op, const std::string& a, const std::string& b, bool swapped = false);

Family gelu_family();
Family gelu_tanh_family();
Family silu_family();
Family layer_norm_family();
Family layer_norm_plain_family();
Family rms_norm_family();
Family group_norm_family();
Family skip_layer_norm_family();
Family skip_rms_norm_family();
Family attention_family();
Family attention_heads_family();
Family attention_heads_masked_family();
Family attention_heads_chosen_family();
Family attention_cache_family();
Family attention_cache_rotary_family();
Family rotary_family();
Family rotary_gathered_family();
Family rotary_constant_family();
Family gated_family();
Family hard_swish_family();
Family hard_sigmoid_family();
Family softplus_family();
Family mish_family();
Family sigmoid_family();
Family clip_family();
Family leaky_relu_family();
Family p_relu_family();
Family softmax_family();
Family log_softmax_family();
Family reduce_l2_family();
Family normalize_l2_family();
Family depth_to_space_family();
Family space_to_depth_family();
Family channel_shuffle_family();

}  // namespace tenon::test
