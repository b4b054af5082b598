// A graph on its way to an ONNX model: which regions become subgraphs and which local functions, under what
// names, in which operator set.
//
// A fused node keeps a region "body" that computes the same; ONNX says this with a local function. Its
// operands and the values its body reads from around it become the function's inputs; small constants are
// written into it, so that equal bodies make one function. Regions are written innermost first, so nothing
// recurses.
#pragma once
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "opset_forms.hpp"
#include "tenon/abi/ops.h"
#include "tenon/abi/symbols.h"

namespace tenon::onnx {

struct ExportOptions {
  int32_t opset = 0;  // 0: the lowest that holds the operators
  bool external = false;
};

class ExportModel {
 public:
  ExportModel(const tn_graph_api* graph_api, const tn_symbols_api* symbols, const tn_registry_api* registry,
              const tn_host* host, tn_graph* graph, ExportOptions options);

  /// Fills everything below. Throws Failure naming the node that cannot be written.
  void prepare();

  int32_t opset = oldest_written;
  std::unordered_map<std::string, int32_t> domains;  // imported beside ai.onnx
  std::string graph_nodes;                           // NodeProto fields of the main graph
  std::string graph_values;                          // its name, inputs and outputs
  std::string functions;                             // FunctionProto fields of the model
  bool has_functions = false;
  struct Initializer {
    std::string name;
    tn_value value;
  };
  std::vector<Initializer> initializers;  // in the order of first use

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
  void collect(int32_t target);
  void collect_outputs(uint32_t region);
  void collect_node(uint32_t region, tn_node node, int32_t target, std::vector<Region>& found);
  bool written_as_function(const sdk::Node& node, const tn_op_def* definition, const Requirement& need,
                           int32_t target) const;
  void find_reads();
  bool is_baked(tn_value constant) const;
  const tn_op_def* definition(tn_sym op) const { return registry_ ? registry_->find(host_, op) : nullptr; }

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
  void write_expanded(uint32_t index, const sdk::Node& node, std::string& out, uint32_t field);
  void write_node(uint32_t index, const sdk::Node& node, std::string& out);
  void write_call(uint32_t index, const sdk::Node& node, const Region& function, std::string& out);
  void write_attributes(const sdk::Node& node, std::string_view op, bool standard, std::string& out);
  std::vector<std::string> output_names(uint32_t index, std::string& nodes, uint32_t field);
  std::string value_info(const std::string& name, const tn_type& type, bool with_shape) const;
  void import(uint32_t region, std::string_view domain);

  sdk::GraphView graph_;
  const tn_symbols_api* symbols_;
  const tn_registry_api* registry_;
  const tn_host* host_;
  ExportOptions options_;
  std::vector<Region> regions_;  // parents before children
  std::unordered_map<tn_region, uint32_t> region_index_;
  std::vector<std::string> names_;  // of the main context, by value
  std::unordered_set<std::string> used_names_;
  std::unordered_map<std::string, std::string> function_of_body_;  // name by contents
  std::unordered_map<std::string, uint32_t> function_counts_;
  std::vector<std::string> too_new_;                     // nodes that ask for more than options_.opset
  std::vector<std::pair<std::string, int32_t>> pinned_;  // operators without a definition, and their version
  std::unordered_set<tn_node> expanded_;                 // written as the operators they are made of
  bool hole_ = false;  // an operator that the common runtime lacks at the target although ONNX has it
};

}  // namespace tenon::onnx
