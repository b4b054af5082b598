// A graph on its way to an ONNX model: which regions become subgraphs and which local functions, under what
// names, in which operator set.
//
// A fused node keeps a region "body" that computes the same; ONNX says this with a local function. Its
// operands and the values its body reads from around it become the function's inputs; small constants are
// written into it, so that equal bodies make one function. Regions are written innermost first, so nothing
// recurses. What an operator set cannot say is replaced in the graph first (export_lower.hpp), or written in
// an older form (older_forms.hpp).
#pragma once
#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "export_choice.hpp"
#include "tenon/abi/graph_edit.h"
#include "tenon/abi/symbols.h"
#include "tenon/sdk/plugin.hpp"

namespace tenon::onnx {

struct ExportOptions {
  int32_t opset = 0;  // 0: the lowest that holds the operators
  bool external = false;
};

class ExportModel {
 public:
  ExportModel(const sdk::Services& services, tn_graph* graph, ExportOptions options);

  /// Fills everything below. Throws Failure naming the node that cannot be written.
  void prepare();

  int32_t opset = oldest_chosen;
  std::unordered_map<std::string, int32_t> domains;  // imported beside ai.onnx
  std::string graph_nodes;                           // NodeProto fields of the main graph
  std::string graph_values;                          // its name, inputs and outputs
  std::string functions;                             // FunctionProto fields of the model
  struct Initializer {
    std::string name;
    tn_value value;
  };
  std::vector<Initializer> initializers;  // in the order of first use

  /// Before IR version 4 an initializer had to be an input too, and every input could be overridden; a model
  /// that has inputs of both kinds needs that version.
  int32_t ir_version() const { return std::max(ir_version_of(opset), overridable_ ? 4 : 0); }

  const sdk::GraphView& graph() const noexcept { return graph_; }
  const tn_symbols_api* symbols() const noexcept { return symbols_; }

 private:
  enum class Kind { main, subgraph, function };
  struct Region {
    tn_region id;
    tn_node owner;
    Kind kind;
    uint32_t parent;
    uint32_t context;  // the main graph's or function's region whose names it uses
    std::vector<tn_value>
        reads;          // values from outside this region, once each; of functions, their further inputs
    std::string bytes;  // GraphProto, once written
    std::string function, domain;
    // Of functions:
    std::unordered_map<tn_value, std::string> names;
    std::string constants;  // Constant nodes
    uint32_t counter = 0;
    std::unordered_set<std::string> domains;
  };

  // Collecting (export_collect.cpp).
  void collect();
  void collect_outputs(uint32_t region);
  void collect_node(uint32_t region, tn_node node, std::vector<Region>& found);
  void ask_for(int32_t needed, const std::string& who, const std::string& reason);
  void find_reads();
  bool is_baked(tn_value constant) const;

  // Names.
  void reserve_main_names();
  const std::string& name_of(uint32_t region, tn_value value);
  const std::string& name_in_main(tn_value value);
  std::string unique(std::string_view wanted);

  // Writing (export_write.cpp).
  void write_region(uint32_t index);
  void write_main(uint32_t index);
  void write_function(uint32_t index);
  void write_subgraph(uint32_t index);
  void write_nodes(uint32_t index, std::string& out, uint32_t field);
  void write_steps(uint32_t index, const sdk::Node& node, const Steps& steps, std::string& out,
                   uint32_t field);
  void write_node(uint32_t index, const sdk::Node& node, std::string& out);
  void write_subgraphs(const sdk::Node& node, std::string& out);
  void write_call(uint32_t index, const sdk::Node& node, const Region& function, std::string& out);
  void write_attributes(const sdk::Node& node, std::string_view op, bool standard, std::string& out);
  void write_attribute(const sdk::Node& node, std::string_view name, const tn_attr& attribute,
                       std::string& out) const;
  std::vector<std::string> output_names(uint32_t index, std::string& nodes, uint32_t field);
  tn_type declared_type(tn_value value) const;
  std::string value_info(const std::string& name, const tn_type& type, bool with_shape) const;
  void import(uint32_t region, std::string_view domain);

  sdk::GraphView graph_;
  const tn_symbols_api* symbols_;
  const tn_edit_api* edit_;
  Choosing choosing_;
  ExportOptions options_;
  std::vector<Region> regions_;  // parents before children
  std::unordered_map<tn_region, uint32_t> region_index_;
  std::vector<std::string> names_;  // of the main context, by value
  std::unordered_set<std::string> used_names_;
  std::unordered_map<std::string, std::string> function_of_body_;  // name by contents
  std::unordered_map<std::string, uint32_t> function_counts_;
  std::vector<std::string> too_new_;                     // nodes that ask for more than options_.opset
  std::vector<std::pair<std::string, int32_t>> pinned_;  // operators without a definition, and their version
  bool overridable_ = false;                             // an input of the model has a default
  std::unordered_map<tn_node, Steps> older_;             // written in an older form
};

}  // namespace tenon::onnx
