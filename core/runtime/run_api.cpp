// tn_run_api: what a kernel may ask of the host while it runs. Nothing here lets an exception out.
#include <algorithm>
#include <cstring>

#include "core/base/tensor.hpp"
#include "core/base/text.hpp"
#include "core/graph/infer.hpp"
#include "core/runtime/plan.hpp"

namespace tenon {
namespace {

void fail(tn_run* run, tn_str text) {
  const std::lock_guard<std::mutex> lock(run->state->mutex);
  if (run->state->failure.empty()) run->state->failure = string(text);
}

template <class F>
tn_status guarded(tn_run* run, F&& body) {
  try {
    return body();
  } catch (const Error& error) {
    fail(run, to_abi(error.diagnostics.empty()
                         ? error.what()
                         : error.diagnostics.front().where + ": " + error.diagnostics.front().text));
    return TN_ERR_LIMIT;
  } catch (const std::bad_alloc&) {
    fail(run, to_abi("there is not enough memory"));
    return TN_ERR_MEMORY;
  } catch (const std::exception& error) {
    fail(run, to_abi(error.what()));
    return TN_ERR_INTERNAL;
  }
}

const StepInfo& info_of(const tn_run* run) { return run->segment->infos[run->step]; }
const Operand* input_operand(const tn_run* run, uint32_t i) {
  const StepInfo& info = info_of(run);
  return i < info.input_count ? &run->segment->operands[info.first_operand + i] : nullptr;
}
const Operand* output_operand(const tn_run* run, uint32_t i) {
  const StepInfo& info = info_of(run);
  return i < info.output_count ? &run->segment->operands[info.first_operand + info.input_count + i] : nullptr;
}

bool in_cell(const Operand& operand) {
  return operand.place == Place::cell || operand.place == Place::slot || operand.place == Place::owned;
}

// What an operand is in this run; dims are the planned ones where they are known.
Cell cell_of(const tn_run* run, const Operand& operand) {
  Cell cell;
  switch (operand.place) {
    case Place::absent:
      return cell;
    case Place::constant:
      cell.kind = TN_KIND_TENSOR;
      cell.tensor = {operand.dtype, operand.rank, operand.dims, const_cast<void*>(operand.pointer),
                     operand.bytes};
      return cell;
    case Place::arena:
      cell.kind = TN_KIND_TENSOR;
      cell.tensor = {operand.dtype, operand.rank, operand.dims, run->frame->base + operand.offset,
                     operand.bytes};
      return cell;
    default:
      break;
  }
  cell = run->state->cells[operand.cell];
  if (cell.kind == TN_KIND_TENSOR && operand.rank >= 0) {
    const bool same = cell.tensor.rank == operand.rank &&
                      std::equal(operand.dims, operand.dims + operand.rank, cell.tensor.dims);
    if (!same) cell.any = nullptr;  // a view: the handle of its class has other dims
    cell.tensor = {operand.dtype, operand.rank, operand.dims, cell.tensor.data, operand.bytes};
  }
  return cell;
}

tn_any* lend(tn_run* run, AnyRef any) {
  const std::lock_guard<std::mutex> lock(run->state->mutex);
  run->state->temporaries.push_back(any.get());
  return any.take();
}

tn_status input_tensor(tn_run* run, uint32_t i, tn_tensor* out) {
  const Operand* operand = input_operand(run, i);
  if (operand == nullptr || operand->place == Place::absent) return TN_ERR_NOT_FOUND;
  const Cell cell = cell_of(run, *operand);
  if (cell.kind == TN_KIND_NONE) return TN_ERR_NOT_FOUND;
  if (cell.kind == TN_KIND_TENSOR) {
    *out = cell.tensor;
    return TN_OK;
  }
  if (cell.kind != TN_KIND_OPTIONAL) return TN_ERR_INVALID;
  if (cell.any->items.empty()) return TN_ERR_NOT_FOUND;
  *out = cell.any->items.front()->tensor();
  return TN_OK;
}

void put_in_slot(tn_run* run, const Operand& operand, AnyRef any) {
  Cell& cell = run->state->cells[operand.cell];
  if (cell.any != nullptr) any_release(cell.any);
  cell.kind = any->kind;
  cell.tensor = any->kind == TN_KIND_TENSOR ? any->tensor() : tn_tensor{};
  cell.any = any.take();
}

std::string place_of(const tn_run* run) { return node_place(*run->state->graph->graph, info_of(run).node); }

bool is_planned_type(const Operand& operand, tn_dtype dtype, std::span<const int64_t> dims) {
  return operand.dtype == dtype && operand.rank == static_cast<int32_t>(dims.size()) &&
         std::equal(dims.begin(), dims.end(), operand.dims);
}

tn_status output_tensor(tn_run* run, uint32_t i, tn_dtype dtype, int32_t rank, const int64_t* dims,
                        void** data) {
  return guarded(run, [&]() -> tn_status {
    const Operand* operand = output_operand(run, i);
    const std::span<const int64_t> shape(dims, static_cast<size_t>(std::max(rank, 0)));
    if (operand == nullptr) {
      fail(run, to_abi(fmt::format("asked for memory of result {}, which the node has not", i)));
      return TN_ERR_INVALID;
    }
    if (operand->place == Place::arena || operand->place == Place::owned) {
      if (!is_planned_type(*operand, dtype, shape)) {
        fail(run, to_abi(fmt::format("wants result {} as {} {}, but its type was inferred as {} {}", i,
                                     dtype_name(dtype), dims_text(shape), dtype_name(operand->dtype),
                                     dims_text({operand->dims, static_cast<size_t>(operand->rank)}))));
        return TN_ERR_INVALID;
      }
      *data = run->frame->pointers[info_of(run).first_pointer + info_of(run).input_count + i];
      if (dtype == TN_STRING) std::memset(*data, 0, operand->bytes);
      return TN_OK;
    }
    AnyRef any = new_tensor(dtype, shape, place_of(run));
    *data = any->data;
    if (operand->place == Place::absent) {
      lend(run, std::move(any));  // nobody wants it
    } else {
      put_in_slot(run, *operand, std::move(any));
    }
    return TN_OK;
  });
}

tn_any* input(tn_run* run, uint32_t i) {
  const Operand* operand = input_operand(run, i);
  if (operand == nullptr || operand->place == Place::absent) return nullptr;
  tn_any* any = nullptr;
  guarded(run, [&]() -> tn_status {
    const Cell cell = cell_of(run, *operand);
    if (cell.kind == TN_KIND_NONE) return TN_OK;
    if (cell.any != nullptr) {
      any = cell.any;
    } else if (operand->place == Place::constant) {
      any = lend(run, borrow_tensor(cell.tensor, run->state->graph->weak_from_this().lock()));
    } else if (in_cell(*operand) && run->state->cells[operand->cell].any != nullptr) {
      AnyRef view = borrow_tensor(cell.tensor, nullptr);
      view->items.push_back(AnyRef::share(run->state->cells[operand->cell].any).take());
      any = lend(run, std::move(view));
    } else {
      // The kernel may keep the handle, the arena and the caller's memory may not be kept.
      any = lend(run, copy_tensor(cell.tensor, place_of(run)));
    }
    return TN_OK;
  });
  return any;
}

tn_status set_output(tn_run* run, uint32_t i, tn_any* any) {
  return guarded(run, [&]() -> tn_status {
    const Operand* operand = output_operand(run, i);
    if (operand == nullptr || any == nullptr) {
      fail(run, to_abi(fmt::format("gives {} as result {}", any == nullptr ? "nothing" : "a value", i)));
      return TN_ERR_INVALID;
    }
    if (operand->place == Place::absent) return TN_OK;
    if (operand->place == Place::slot) {
      put_in_slot(run, *operand, AnyRef::share(any));
      return TN_OK;
    }
    if (any->kind != TN_KIND_TENSOR || !is_planned_type(*operand, any->dtype, any->dims)) {
      fail(run, to_abi(fmt::format("gives result {} as {}, but its type was inferred as {}", i,
                                   dims_text(any->dims),
                                   dims_text({operand->dims, static_cast<size_t>(operand->rank)}))));
      return TN_ERR_INVALID;
    }
    void* data = run->frame->pointers[info_of(run).first_pointer + info_of(run).input_count + i];
    if (operand->bytes != 0) std::memcpy(data, any->data, operand->bytes);
    if (any->dtype == TN_STRING) lend(run, AnyRef::share(any));
    return TN_OK;
  });
}

// The handles that hold a nested run's state until it is done.
struct StateLease {
  std::unique_ptr<RunState> state;
  ~StateLease() { release_state(std::move(state)); }
};

tn_status run_region(tn_run* run, uint32_t r, tn_any* const* inputs, uint32_t input_count, tn_any** outputs,
                     uint32_t output_count) {
  RunState& outer = *run->state;
  for (uint32_t i = 0; i < output_count; ++i) outputs[i] = nullptr;
  try {
    const StepInfo& info = info_of(run);
    const std::span<const tn_region> regions = outer.graph->graph->node(info.node).regions();
    if (r >= regions.size()) {
      fail(run, to_abi(fmt::format("runs region {}, the node has {}", r, regions.size())));
      return TN_ERR_INVALID;
    }
    uint32_t capture = info.first_operand + info.input_count + info.output_count;
    for (uint32_t i = 0; i < r; ++i)
      capture += static_cast<uint32_t>(outer.graph->programs[regions[i]]->captures.size());
    RegionProgram& program = *outer.graph->programs[regions[r]];
    if (input_count != program.inputs.size() || output_count != program.outputs.size()) {
      fail(run,
           to_abi(fmt::format("region {} takes {} values and gives {}; it was run with {} and {}", r,
                              program.inputs.size(), program.outputs.size(), input_count, output_count)));
      return TN_ERR_INVALID;
    }
    StateLease lease{acquire_state(*outer.environment, *outer.graph, program)};
    RunState& state = *lease.state;
    for (uint32_t i = 0; i < input_count; ++i) state.fill_cell(i, inputs[i]);
    for (uint32_t i = 0; i < program.captures.size(); ++i) {
      const Cell captured = cell_of(run, run->segment->operands[capture + i]);
      if (captured.any != nullptr) {
        state.fill_cell(input_count + i, captured.any);
      } else if (captured.kind != TN_KIND_NONE) {
        state.fill_cell(input_count + i, captured.tensor);
      }
    }
    std::vector<AnyRef> results;
    run_region_program(state, results);
    for (uint32_t i = 0; i < output_count; ++i) outputs[i] = results[i].take();
    return TN_OK;
  } catch (const Error& error) {
    const std::lock_guard<std::mutex> lock(outer.mutex);
    outer.nested_errors = error.diagnostics;
    return TN_ERR_INVALID;
  } catch (const NeedsExpansion& needs) {
    const std::lock_guard<std::mutex> lock(outer.mutex);
    outer.needs_expansion = needs.nodes;
    return TN_ERR_UNSUPPORTED;
  } catch (const std::bad_alloc&) {
    fail(run, to_abi("there is not enough memory"));
    return TN_ERR_MEMORY;
  } catch (const std::exception& error) {
    fail(run, to_abi(error.what()));
    return TN_ERR_INTERNAL;
  }
}

tn_status new_tensor_of(tn_run* run, tn_dtype dtype, int32_t rank, const int64_t* dims, tn_any** any,
                        void** data) {
  return guarded(run, [&]() -> tn_status {
    AnyRef made = new_tensor(dtype, {dims, static_cast<size_t>(std::max(rank, 0))}, place_of(run));
    if (data != nullptr) *data = made->data;
    *any = made.take();
    return TN_OK;
  });
}

tn_status new_sequence_of(tn_run* run, tn_any* const* items, uint32_t count, tn_dtype dtype, tn_any** any) {
  return guarded(run, [&]() -> tn_status {
    *any = new_sequence({items, count}, dtype).take();
    return TN_OK;
  });
}

tn_status new_optional_of(tn_run* run, tn_any* item, tn_any** any) {
  return guarded(run, [&]() -> tn_status {
    *any = new_optional(item).take();
    return TN_OK;
  });
}

tn_status tensor_of(tn_any* any, tn_tensor* out) {
  if (any == nullptr || any->kind != TN_KIND_TENSOR) return TN_ERR_INVALID;
  *out = any->tensor();
  return TN_OK;
}

uint32_t kind_of(tn_any* any) { return any == nullptr ? static_cast<uint32_t>(TN_KIND_NONE) : any->kind; }

uint32_t sequence_size(tn_any* any) {
  return any == nullptr || any->kind == TN_KIND_TENSOR ? 0 : static_cast<uint32_t>(any->items.size());
}

tn_any* sequence_item(tn_any* any, uint32_t i) { return i < sequence_size(any) ? any->items[i] : nullptr; }

void retain(tn_any* any) {
  if (any != nullptr) any_retain(any);
}
void release(tn_any* any) {
  if (any != nullptr) any_release(any);
}

tn_str keep_text(tn_run* run, tn_str text) {
  tn_str kept{};
  guarded(run, [&]() -> tn_status {
    const std::lock_guard<std::mutex> lock(run->state->mutex);
    kept = to_abi(run->state->texts.emplace_back(view(text)));
    return TN_OK;
  });
  return kept;
}

// Splitmix64 over a counter that all runs of the session share.
uint64_t random_seed(tn_run* run) {
  uint64_t z =
      run->state->environment->random_state.fetch_add(0x9e3779b97f4a7c15u, std::memory_order_relaxed) +
      0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace

const tn_run_api* run_api() {
  static const tn_run_api api = [] {
    tn_run_api table{};
    table.size = sizeof table;
    table.fail = fail;
    table.input_tensor = input_tensor;
    table.output_tensor = output_tensor;
    table.input = input;
    table.set_output = set_output;
    table.run_region = run_region;
    table.new_tensor = new_tensor_of;
    table.new_sequence = new_sequence_of;
    table.new_optional = new_optional_of;
    table.tensor = tensor_of;
    table.kind = kind_of;
    table.sequence_size = sequence_size;
    table.sequence_item = sequence_item;
    table.retain = retain;
    table.release = release;
    table.keep_text = keep_text;
    table.random_seed = random_seed;
    return table;
  }();
  return &api;
}

}  // namespace tenon
