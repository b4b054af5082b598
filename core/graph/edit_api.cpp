// The table of tenon.graph-edit/1, and the host's own Transaction.
#include <new>

#include "core/base/text.hpp"
#include "core/graph/edit.hpp"

namespace tenon {

struct GraphApi {
  static tn_status begin(Graph& graph, std::string_view who, uint32_t flags, tn_edit** edit) {
    *edit = nullptr;
    if (graph.edit_) return TN_ERR_INVALID;
    if (!(flags & TN_EDIT_BUILD) && graph.edits_committed_ >= graph.edit_limit_) return TN_ERR_LIMIT;
    graph.edit_ = std::make_unique<tn_edit>(graph, who, flags);
    *edit = graph.edit_.get();
    return TN_OK;
  }
  static tn_status commit(tn_edit* edit, Diagnostics& found) {
    Graph& graph = edit->graph;
    const std::unique_ptr<tn_edit> owned = std::move(graph.edit_);
    try {
      const tn_status status = owned->commit(found);
      if (status != TN_OK) owned->rollback();
      return status;
    } catch (...) {
      owned->rollback();
      throw;
    }
  }
  static void rollback(tn_edit* edit) {
    Graph& graph = edit->graph;
    const std::unique_ptr<tn_edit> owned = std::move(graph.edit_);
    owned->log_refusals();
    owned->rollback();
  }
};

namespace {
// Nothing thrown may cross the boundary.
template <class F>
tn_status guarded(F&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return TN_ERR_MEMORY;
  } catch (...) {
    return TN_ERR_INTERNAL;
  }
}

tn_status begin(tn_graph* graph, tn_str who, uint32_t flags, tn_edit** edit) {
  return guarded([&] { return GraphApi::begin(Graph::from(graph), view(who), flags, edit); });
}
tn_status commit(tn_edit* edit, const tn_diag* diag) {
  return guarded([&]() -> tn_status {
    Diagnostics found;
    try {
      const tn_status status = GraphApi::commit(edit, found);
      report(diag, found);
      return status;
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {
      report(diag, TN_SEVERITY_HOST_MISBEHAVING, "G399", "", error.what());
      return TN_ERR_INTERNAL;
    }
  });
}
void rollback(tn_edit* edit) {
  guarded([&]() -> tn_status {
    GraphApi::rollback(edit);
    return TN_OK;
  });
}
tn_status create_node(tn_edit* edit, const tn_node_desc* desc, tn_node* node) {
  return guarded([&] { return edit->create_node(*desc, node); });
}
tn_status create_region(tn_edit* edit, tn_node parent, tn_str name, tn_region* region) {
  return guarded([&] { return edit->create_region(parent, view(name), region); });
}
tn_status region_input(tn_edit* edit, tn_region region, tn_str name, const tn_type* type, tn_value* value) {
  return guarded([&] { return edit->region_input(region, view(name), type, value); });
}
tn_status region_outputs(tn_edit* edit, tn_region region, const tn_value* values, uint32_t count) {
  return guarded([&] { return edit->region_outputs(region, values, count); });
}
tn_status region_output_name(tn_edit* edit, tn_region region, uint32_t index, tn_str name) {
  return guarded([&] { return edit->region_output_name(region, index, view(name)); });
}
tn_status constant_copy(tn_edit* edit, tn_str name, const tn_tensor* tensor, tn_value* value) {
  return guarded([&] { return edit->constant_copy(view(name), tensor, value); });
}
tn_status constant_adopt(tn_edit* edit, tn_str name, const tn_tensor* tensor, void (*release)(void*),
                         void* context, tn_value* value) {
  return guarded([&] { return edit->constant_adopt(view(name), tensor, release, context, value); });
}
tn_status constant_slice(tn_edit* edit, tn_str name, const tn_tensor* tensor, tn_file* file, uint64_t offset,
                         tn_value* value) {
  return guarded([&] { return edit->constant_slice(view(name), tensor, file, offset, value); });
}
tn_status constant_uniform(tn_edit* edit, tn_str name, const tn_tensor* tensor, tn_value* value) {
  return guarded([&] { return edit->constant_uniform(view(name), tensor, value); });
}
tn_status input_default(tn_edit* edit, tn_value input, tn_value constant) {
  return guarded([&] { return edit->input_default(input, constant); });
}
tn_status replace_uses(tn_edit* edit, tn_value from, tn_value to) {
  return guarded([&] { return edit->replace_uses(from, to); });
}
tn_status set_input(tn_edit* edit, tn_node node, uint32_t index, tn_value value) {
  return guarded([&] { return edit->set_input(node, index, value); });
}
tn_status set_attr(tn_edit* edit, tn_node node, const tn_attr* attr) {
  return guarded([&] { return edit->set_attr(node, *attr); });
}
tn_status remove_attr(tn_edit* edit, tn_node node, tn_sym name) {
  return guarded([&] { return edit->remove_attr(node, name); });
}
tn_status set_version(tn_edit* edit, tn_node node, int32_t version) {
  return guarded([&] { return edit->set_version(node, version); });
}
tn_status erase(tn_edit* edit, tn_node node) {
  return guarded([&] { return edit->erase(node); });
}
tn_status inline_region(tn_edit* edit, tn_region from, const tn_value* inputs, uint32_t count,
                        tn_node anchor) {
  return guarded([&] { return edit->inline_region(from, inputs, count, anchor); });
}
tn_status set_type(tn_edit* edit, tn_value value, const tn_type* type) {
  return guarded([&] { return edit->set_type(value, *type); });
}
tn_status set_opset(tn_edit* edit, tn_str domain, int32_t version) {
  return guarded([&] { return edit->set_opset(view(domain), version); });
}
tn_status set_metadata(tn_edit* edit, tn_str key, tn_str text) {
  return guarded([&] { return edit->set_metadata(view(key), view(text)); });
}
tn_status clone_node(tn_edit* edit, tn_node node, tn_region region, tn_node before, const tn_value* inputs,
                     uint32_t count, tn_node* clone) {
  return guarded([&] { return edit->clone_node(node, region, before, inputs, count, clone); });
}

constexpr tn_edit_api table = {sizeof(tn_edit_api),
                               0,
                               begin,
                               commit,
                               rollback,
                               create_node,
                               create_region,
                               region_input,
                               region_outputs,
                               region_output_name,
                               constant_copy,
                               constant_adopt,
                               constant_slice,
                               constant_uniform,
                               input_default,
                               replace_uses,
                               set_input,
                               set_attr,
                               remove_attr,
                               set_version,
                               erase,
                               inline_region,
                               set_type,
                               set_opset,
                               set_metadata,
                               clone_node};
}  // namespace

const tn_edit_api* edit_api() { return &table; }

Transaction::Transaction(Graph& graph, std::string_view who, uint32_t flags) {
  const tn_status status = GraphApi::begin(graph, who, flags, &edit_);
  if (status == TN_ERR_LIMIT)
    throw Error(exit_job_failed, std::string(who), "the limit of applied rewrites is reached");
  if (status != TN_OK)
    throw Error(exit_job_failed, std::string(who), "another transaction of this graph is open");
}
Transaction::~Transaction() {
  if (edit_) rollback(edit_);
}
bool Transaction::commit(Diagnostics& diagnostics) {
  tn_edit* const edit = std::exchange(edit_, nullptr);
  return GraphApi::commit(edit, diagnostics) == TN_OK;
}

}  // namespace tenon
