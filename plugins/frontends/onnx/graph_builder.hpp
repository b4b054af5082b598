// Builds the graph from a decoded model: names to values, subgraphs to regions, local functions inlined.
//
// A stack of frames, one for each graph, subgraph or function body being built, replaces recursion: its depth
// is bounded, and neither a long chain nor nested calls can overflow the machine's stack.
#pragma once
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "attributes.hpp"
#include "constants.hpp"
#include "model_messages.hpp"
#include "name_map.hpp"
#include "tenon/abi/limits.h"
#include "tenon/abi/ops.h"

namespace tenon::onnx {

struct BuilderServices {
  const tn_host* host;
  const tn_graph_api* graph_api;
  const tn_edit_api* edit_api;
  const tn_symbols_api* symbols;
  const tn_registry_api* registry;  // NULL: every operator counts as known
  const tn_files_api* files;
  const tn_limits_api* limits;  // NULL: nothing is asked
  tn_graph* graph;
  tn_edit* edit;
  tn_file* file;
  sdk::Diag diag;
};

class GraphBuilder {
 public:
  GraphBuilder(ModelMessage& model, const BuilderServices& services);
  void build();

 private:
  /// What a name means in one frame. Results are known by name before their node is made.
  struct Slot {
    tn_value value = TN_NONE;
    uint32_t node = UINT32_MAX;  // number of the node that makes it; UINT32_MAX: not of a node
    bool made = false;
  };
  using Names = NameMap<Slot>;
  using Bindings =
      std::unordered_map<std::string_view, const AttributeMessage*>;  // attributes of a function's call

  struct Frame {
    const Block* block = nullptr;
    const GraphMessage* graph = nullptr;  // of main graph and subgraphs
    FunctionMessage* function = nullptr;  // of function bodies
    Frame* outer = nullptr;               // whose names can be seen; none for the main graph and functions
    tn_region region = 0;
    const Opsets* opsets = nullptr;
    std::shared_ptr<const Bindings> bindings;
    std::string prefix;  // of names inside inlined functions
    std::unordered_map<std::string_view, std::string>
        renamed;  // results of functions have the caller's names
    Names names;
    std::vector<uint32_t> order;  // empty: as in the file
    size_t next = 0;
    const NodeMessage* current = nullptr;  // waits for its subgraphs or its function body
    tn_node current_node = TN_NONE;
    std::vector<std::pair<std::string_view, const GraphMessage*>> pending;
    size_t pending_next = 0;
  };

  void push_main();
  void push_subgraph(Frame& parent, std::string_view attribute, const GraphMessage& graph);
  void push_function(Frame& caller, const NodeMessage& node, FunctionMessage& function);
  void step(Frame& frame);
  void finish(Frame& frame);
  void finish_function(Frame& frame, Frame& caller);
  void check_output_type(const ValueInfoMessage& declared, tn_value value);

  void declare_results(Frame& frame);
  void declare_inputs_and_constants(Frame& frame);
  void process(Frame& frame, const NodeMessage& node);
  void check_attribute_names(const Frame& frame, const NodeMessage& node) const;
  void check_known_attributes(const Frame& frame, const NodeMessage& node, int32_t version,
                              const tn_op_def& definition) const;
  bool make_constant_node(Frame& frame, const NodeMessage& node);
  void make_node(Frame& frame, const NodeMessage& node);
  void define_results(Frame& frame, const NodeMessage& node, const tn_value* values);
  void hint_types(Frame& frame, const NodeMessage& node);

  Slot* find(Frame& frame, std::string_view name) const;
  void define(Frame& frame, std::string_view name, tn_value value, const char* what);
  /// Are all names that the node reads made? False: a node of this frame that makes one comes later.
  bool ready(Frame& frame, const NodeMessage& node) const;
  void sort_rest(Frame& frame);
  const AttributeMessage* resolve(const Frame& frame, const AttributeMessage& attribute) const;
  FunctionMessage* find_function(const NodeMessage& node) const;
  int64_t opset_of(const Frame& frame, const NodeMessage& node) const;
  tn_sym op_symbol(const NodeMessage& node);
  std::string value_name(const Frame& frame, std::string_view name) const;
  std::string place(const Frame& frame, const NodeMessage& node) const;
  [[noreturn]] void undefined(const Frame& frame, const NodeMessage* node, std::string_view name) const;
  [[noreturn]] void circular_call(const Frame& caller, const NodeMessage& node,
                                  const FunctionMessage& function) const;
  const char* file_start() const { return reinterpret_cast<const char*>(s_.files->data(s_.file)); }

  ModelMessage& model_;
  BuilderServices s_;
  TypeReader types_;
  ConstantMaker constants_;
  AttributeStore attributes_;
  std::unordered_map<std::string, FunctionMessage*> functions_;
  std::unordered_map<std::string_view, tn_sym> default_symbols_;  // of operators of ai.onnx
  std::unordered_set<std::string> prefixes_;
  std::unordered_map<const GraphMessage*, std::unordered_map<std::string_view, Bytes>> value_types_;
  std::vector<std::unique_ptr<Frame>> stack_;
  uint64_t nodes_inlined_ = 0, calls_made_ = 0;
  uint64_t dense_bytes_left_ = largest_dense_bytes;  // for what is sparse in the file
  // Reused by make_node.
  std::vector<tn_value> inputs_;
  std::vector<tn_attr> attrs_;
  std::vector<tn_str> output_names_;
  std::vector<std::string> long_names_;
};

}  // namespace tenon::onnx
