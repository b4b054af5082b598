// The graph: values, nodes, regions, types, symbols, constants. plugin_api's graph.h has the semantics.
//
// Storage is flat: ids index chunked arrays, dead things leave tombstones, ids are never reused. Every
// operand knows its slot in its value's use list, so a use is removed in O(1). Nodes of a region form a list
// with order labels: "comes before" is one comparison and an insertion moves nothing. All changes go through
// a transaction (graph_edit.h's table, edit_api()) and are journaled, so undoing costs what was done.
//
// [main]: one thread at a time a graph, reading included (snapshots and expanded constants are cached).
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/diagnostics.hpp"
#include "core/base/files.hpp"
#include "core/graph/op_registry.hpp"
#include "core/graph/storage.hpp"
#include "core/graph/symbols.hpp"
#include "tenon/abi/graph.h"
#include "tenon/abi/graph_edit.h"
#include "tenon/abi/symbols.h"

// The boundary's opaque graph is the base of ours, so that a pointer crosses without a table.
struct tn_graph {
 protected:
  tn_graph() = default;
  ~tn_graph() = default;
};

namespace tenon {

struct Node {
  tn_sym op = 0;
  int32_t op_version = 0;
  tn_region region_id = 0;
  uint32_t name = 0;               // in the name pool
  tn_value* input_data = nullptr;  // followed by as many use slots
  tn_value* output_data = nullptr;
  const tn_attr* attr_data = nullptr;
  const tn_region* region_data = nullptr;
  uint32_t input_count = 0, input_capacity = 0, output_count = 0;
  uint16_t attr_count = 0, region_count = 0;
  tn_node previous = TN_NONE, next = TN_NONE;  // in the region's order
  uint64_t label = 0;                          // ascending along the order
  uint32_t origin = 0;
  bool alive = false;

  std::span<const tn_value> inputs() const { return {input_data, input_count}; }
  std::span<const tn_value> outputs() const { return {output_data, output_count}; }
  std::span<const tn_attr> attrs() const { return {attr_data, attr_count}; }
  std::span<const tn_region> regions() const { return {region_data, region_count}; }
  tn_value input(uint32_t i) const { return i < input_count ? input_data[i] : TN_NONE; }
  tn_value output(uint32_t i) const { return i < output_count ? output_data[i] : TN_NONE; }
};

struct Value {
  uint8_t kind = TN_VALUE_DEAD;  // tn_value_kind
  uint8_t declared = 0;          // its type came from the model and was not inferred yet: a hint
  uint8_t pinned = 0;            // the default of a region input
  uint8_t reserved = 0;
  tn_node producer = TN_NONE;  // results only
  uint32_t index = 0;          // result number, region input number, or number among the constants
  tn_region region = 0;
  uint32_t name = 0;
  tn_value next_of_name = TN_NONE;
  uint32_t type = 0;      // in the type pool
  uint32_t elements = 0;  // in the element pool; 0: not known
  UseList uses;
};

struct Region {
  tn_node parent = TN_NONE;  // TN_NONE: the main region
  uint32_t name = 0;
  bool alive = true;
  tn_node first = TN_NONE, last = TN_NONE;
  uint32_t node_count = 0;
  std::vector<tn_value> inputs;
  std::vector<tn_value> outputs;
  std::vector<uint32_t> output_slots;  // in the values' use lists
  std::vector<uint32_t> output_names;  // as the outside knows them
  std::vector<tn_node> snapshot;       // what nodes() handed out
  bool snapshot_valid = false;
};

struct Constant {
  tn_value value = TN_NONE;
  uint8_t uniform = 0;  // 0 not looked at, 1 all elements equal, 2 not
  bool hashed = false;
  bool from_file = false;
  bool misaligned =
      false;  // a slice where no element could be read in place: copied when the bytes are asked for
  const uint8_t* data = nullptr;  // NULL: uniform and not expanded yet
  uint64_t bytes = 0;
  std::shared_ptr<const void> owner;  // of data; none when the arena has it
  uint64_t file_offset = 0;
  uint64_t hash = 0;
  alignas(16) uint8_t element[16] = {};  // when uniform
};

// The state to go back to; made by Graph::snapshot, ended by restore or release, innermost first.
struct Snapshot {
  size_t position = 0;
  uint64_t version = 0;
  uint64_t edits_committed = 0;
  uint32_t serial = 0;
};

class Graph final : public ::tn_graph {
 public:
  static constexpr tn_region main_region = 0;
  static constexpr uint32_t max_region_depth = 128;  // regions within regions

  Graph();
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  static Graph& from(tn_graph* graph) { return *static_cast<Graph*>(graph); }
  // An independent copy with the same ids. Bytes of constants and attributes are shared, being never changed.
  std::unique_ptr<Graph> clone() const;

  // Operators' definitions, for inference at commit and canonical versions. Not owned. NULL: no inference.
  void set_registry(const OpRegistry* registry) { registry_ = registry; }
  const OpRegistry* registry() const { return registry_; }

  // --- reading; ids must be below the bounds
  uint32_t node_bound() const { return nodes_.size(); }
  uint32_t value_bound() const { return values_.size(); }
  uint32_t region_bound() const { return regions_.size(); }
  const Node& node(tn_node id) const { return nodes_[id]; }
  const Value& value(tn_value id) const { return values_[id]; }
  const Region& region(tn_region id) const { return regions_[id]; }
  // Live nodes in topological order; kept until the region's next change of order. O(1) when nothing changed.
  std::span<const tn_node> nodes(tn_region id) const;
  // Walks the order without a snapshot: TN_NONE ends it.
  tn_node first_node(tn_region id) const { return regions_[id].first; }
  tn_node next_node(tn_node id) const { return nodes_[id].next; }
  bool comes_before(tn_node a, tn_node b) const {
    return nodes_[a].label < nodes_[b].label;
  }  // of one region
  std::span<const tn_use> users(tn_value id) const { return values_[id].uses.span(); }
  uint32_t live_node_count() const { return live_nodes_; }  // of all regions

  std::string_view name(tn_value id) const { return names_.text(values_[id].name); }
  std::string_view node_name(tn_node id) const { return names_.text(nodes_[id].name); }
  std::string_view op_name(tn_node id) const;
  std::string_view region_name(tn_region id) const { return names_.text(regions_[id].name); }
  std::string_view output_name(tn_region id, uint32_t index) const {
    return names_.text(regions_[id].output_names[index]);
  }
  std::string_view name_text(uint32_t name) const { return names_.text(name); }
  // The live value of that name defined in `region` or, failing that, in the nearest region around it;
  // TN_NONE: none.
  tn_value find_value(std::string_view name, tn_region region = main_region) const;
  tn_node find_node(std::string_view name) const;

  const tn_type& type(tn_value id) const {
    return types_[values_[id].type];
  }  // dims live as long as the graph
  const tn_attr* find_attr(tn_node id, tn_sym name) const;
  bool known_elements(tn_value id, const tn_dim** elements, uint32_t* count);
  std::vector<std::string_view> origins(tn_node id) const;
  tn_value default_of(tn_value region_input) const;  // TN_NONE: none

  bool is_constant(tn_value id) const { return values_[id].kind == TN_VALUE_CONSTANT; }
  // The bytes of a constant, expanding a uniform one. False when it is none. `data` lives as long as the
  // value.
  bool constant(tn_value id, tn_tensor* out);
  const void* uniform_element(tn_value id);    // NULL: the elements differ, or it is no constant
  uint64_t constant_hash(tn_value id);         // of type and bytes; lazily made, kept
  bool same_constant(tn_value a, tn_value b);  // type and bytes are equal; cheap when slice or size tells
  // Where the bytes lie; for exporters' and reports' sake.
  const Constant& constant_record(tn_value id) const { return constants_[values_[id].index]; }

  const std::map<std::string, int32_t, std::less<>>& opsets() const { return opsets_; }
  const std::map<std::string, std::string, std::less<>>& metadata() const { return metadata_; }
  SymbolTable& symbols() { return symbols_; }
  const SymbolTable& symbols() const { return symbols_; }
  uint64_t version() const { return version_; }
  uint64_t memory_bytes() const;  // of the structure; constants' bytes not counted

  // The node of `outer` whose regions hold `inner` at any depth; TN_NONE: inner is not inside outer (or is
  // outer).
  tn_node owner_within(tn_region outer, tn_region inner) const;
  uint32_t depth(tn_region id) const;  // the main region's is 0; costs that much
  // True when a node of `user` may read a value defined in `definition`.
  bool is_visible(tn_region definition, tn_region user) const;

  // --- for the host
  void set_graph_name(std::string_view name);
  // The metadata key under which plugins read and set the graph's name.
  static constexpr std::string_view name_key = "graph_name";
  // What a node stands for, by name: for readers of formats that say so. Within a transaction.
  void set_origin_names(tn_node id, std::span<const std::string> names);
  // Type of an input as the user wants it, whatever the model says; before inference.
  void redeclare(tn_value id, const tn_type& type);
  // TN_EDIT_BUILD transactions aside, begin answers TN_ERR_LIMIT after `limit` commits that changed
  // something. Counting starts anew. Default: no limit.
  void set_edit_limit(uint64_t limit);
  uint64_t edits_committed() const { return edits_committed_; }
  std::vector<std::string> edit_authors() const;  // `who` of each counted commit, in order

  // Undo of everything committed since; costs the edits made, nothing when none were. No transaction may be
  // open.
  Snapshot snapshot();
  void restore(const Snapshot& snapshot);
  void release(const Snapshot& snapshot);
  // Lets go of constants that nothing uses any more; they become dead. Between passes: a pass may hold unused
  // ones.
  uint32_t drop_unused_constants();

 private:
  friend struct ::tn_edit;
  friend class GraphTypeStore;
  friend class CommitInference;
  friend struct GraphApi;

  enum class Op : uint32_t {
    node_created,
    node_erased,
    node_moved,
    input_set,
    input_appended,
    uses_replaced,
    attrs_set,
    version_set,
    origin_set,
    region_created,
    region_input_added,
    region_outputs_set,
    region_output_renamed,
    region_erased,
    value_renamed,
    constant_created,
    type_set,
    elements_set,
    default_set,
    opset_set,
    metadata_set,
    constant_died
  };
  struct Entry {
    Op op;
    uint32_t a, b, c;
    uint64_t d;
  };
  struct SavedOutputs {
    std::vector<tn_value> values;
    std::vector<uint32_t> slots, names;
  };
  struct Origin {
    uint32_t name = 0;             // leaf, when left is 0
    uint32_t left = 0, right = 0;  // joined
  };

  // --- primitive changes; each journals what undoes it (when recording)
  void record(Op op, uint32_t a = 0, uint32_t b = 0, uint32_t c = 0, uint64_t d = 0);
  void touch() { version_ = ++highest_version_; }
  void undo_to(size_t position);
  void undo(const Entry& entry);
  void undo_rare(const Entry& entry);

  uint32_t add_use(tn_value value, const tn_use& use);
  void remove_use(tn_value value, uint32_t slot);
  void restore_use(tn_value value, uint32_t slot, const tn_use& use);
  void set_use_slot(const tn_use& use, uint32_t slot);
  uint32_t* input_slots(Node& node) { return node.input_data + node.input_capacity; }

  tn_value new_value(uint8_t kind, tn_node producer, uint32_t index, tn_region region, uint32_t name);
  void name_value(tn_value id, uint32_t name);  // into the index; no journal
  void unname_value(tn_value id);               // out of the index; the value keeps its name
  uint32_t unique_name(std::string_view wanted, bool for_node);
  bool value_name_clash(uint32_t name, tn_region region) const;
  void rename_value(tn_value id, uint32_t name);  // journaled

  tn_node create_node(tn_sym op, int32_t version, tn_region region, tn_node before, uint32_t name,
                      std::span<const tn_value> inputs, const tn_attr* attrs, uint32_t attr_count,
                      std::span<const uint32_t> output_names, uint32_t origin);
  void set_input(tn_node id, uint32_t index, tn_value value);
  void append_input(tn_node id, tn_value value);
  void replace_uses(tn_value from, tn_value to);
  void set_attrs(tn_node id, const tn_attr* attrs, uint32_t count);
  void erase_node(tn_node id);
  void move_node(tn_node id, tn_region region, tn_node before);
  tn_region create_region(tn_node parent, uint32_t name);
  tn_value add_region_input(tn_region id, uint32_t name, uint32_t type);
  void set_region_outputs(tn_region id, std::span<const tn_value> values);
  void set_type(tn_value id, uint32_t type, bool declared);
  void set_elements(tn_value id, uint32_t elements);
  tn_value add_constant(Constant constant, uint32_t name, uint32_t type, tn_region region);

  // Order (order.cpp).
  void link(tn_node id, tn_region region, tn_node before);
  void unlink(tn_node id);
  void relabel_around(tn_node id);
  bool order_holds(tn_region region) const;
  bool sort_region(tn_region region, std::vector<tn_node>& cycle);
  bool bring_before(tn_node producer, tn_node user, std::vector<tn_node>& cycle);

  uint32_t intern_type(const tn_type& type);
  uint32_t intern_elements(const tn_dim* elements, uint32_t count);
  bool find_elements(tn_value id, const tn_dim** elements, uint32_t* count);
  const tn_attr* intern_attrs(const tn_attr* attrs, uint32_t count, uint32_t stride);
  void copy_attr(const tn_attr& from, tn_attr& to);
  uint32_t leaf_origin(uint32_t name);
  uint32_t join_origins(uint32_t a, uint32_t b);
  tn_dim data_dependent(tn_node node, uint32_t output, uint32_t axis, int64_t lo, int64_t hi);
  void expand(Constant& constant, const tn_type& type);
  void align(Constant& constant);
  void erase_single(tn_node id);
  void set_node_region(tn_node id, tn_region region);
  void reset();  // to the empty graph, registry and limits kept

  ChunkedVector<Node> nodes_;
  ChunkedVector<Value> values_;
  mutable ChunkedVector<Region, 8> regions_;
  ChunkedVector<Constant, 8> constants_;
  ChunkedVector<tn_type, 8> types_;  // 0: unknown
  std::unordered_multimap<uint64_t, uint32_t> type_index_;
  ChunkedVector<std::pair<const tn_dim*, uint32_t>, 8> elements_;  // 0: not known
  std::unordered_multimap<uint64_t, uint32_t> element_index_;
  std::unordered_multimap<uint64_t, std::pair<const tn_attr*, uint32_t>> attr_index_;
  std::vector<Origin> origins_;
  std::unordered_map<uint64_t, uint32_t> origin_index_;
  std::unordered_map<std::string, tn_dim> data_dependent_;
  NamePool names_;
  Arena operands_;   // inputs, slots, outputs: changed in place, so never shared
  Arena immutable_;  // attributes, dims, elements, small constants, lists of regions
  SymbolTable symbols_;
  std::map<std::string, int32_t, std::less<>> opsets_;
  std::map<std::string, std::string, std::less<>> metadata_;
  std::map<tn_value, tn_value> defaults_;
  uint32_t live_nodes_ = 0;

  const OpRegistry* registry_ = nullptr;
  uint64_t version_ = 1, highest_version_ = 1;
  uint64_t edit_limit_ = UINT64_MAX, edits_committed_ = 0;
  std::vector<uint32_t> edit_authors_;  // names

  bool recording_ = false;
  std::vector<Entry> journal_;
  std::vector<SavedOutputs> saved_outputs_;  // of region_outputs_set entries, a stack
  std::vector<std::string> saved_texts_;     // of metadata and opset entries, a stack
  std::vector<Constant> saved_constants_;    // of constant_died entries, a stack
  std::vector<uint32_t> snapshots_;          // serials, a stack
  uint32_t next_serial_ = 1;
  std::unique_ptr<::tn_edit> edit_;
};

// The tables of the boundary. Their functions never let an exception out: it becomes TN_ERR_INTERNAL or
// TN_ERR_MEMORY.
const tn_graph_api* graph_api();
const tn_edit_api* edit_api();
const tn_symbols_api* symbols_api();

// A transaction from the host's own code: rolled back unless committed. Throws Error when the graph refuses.
class Transaction {
 public:
  Transaction(Graph& graph, std::string_view who, uint32_t flags = 0);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  tn_edit* get() const { return edit_; }
  // False: the graph is as it was, and the diagnostics say why.
  bool commit(Diagnostics& diagnostics);

 private:
  tn_edit* edit_ = nullptr;
};

}  // namespace tenon
