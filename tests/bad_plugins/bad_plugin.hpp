// A plugin of every kind that is right in all, but for the one fault that its definition asks for:
// `-DFAULT=wrong_values`. Plain C++ against the boundary, since the SDK would not let most of this happen.
//
// What it has: the operator bad::Scale(x, w) = x * w over float32, two kernels for it (one a reference), a
// pass, a transform, a frontend and an exporter for its own format, a memory planner, a tensor format, a
// device and a kernel for it.
#pragma once
#include <tenon/abi/device.h>
#include <tenon/abi/eval.h>
#include <tenon/abi/exporter.h>
#include <tenon/abi/files.h>
#include <tenon/abi/frontend.h>
#include <tenon/abi/kernels.h>
#include <tenon/abi/memory.h>
#include <tenon/abi/ops.h>
#include <tenon/abi/pass.h>
#include <tenon/abi/rules.h>
#include <tenon/abi/tensor_file.h>
#include <tenon/abi/transforms.h>

#include <cstdlib>
#include <cstring>

namespace bad {

// Every fault, by the number of the check that is the first to see it (bad_plugins_test.cpp has the table).
enum Fault {
  none,
  exports_more,
  unique_symbol,
  wants_host_symbol,
  needs_sanitizer,
  text_relocations,
  executable_stack,
  build_folder_rpath,
  no_sidecar,
  sidecar_of_another,
  no_entry,
  throws_on_load,
  crashes_on_load,
  exits_on_load,
  hangs_on_load,
  small_table,
  lists_what_it_lacks,
  changes_its_table,
  serves_every_major,
  answers_similar_ids,
  hides_an_interface,
  fails_in_open,
  crashes_in_open,
  opens_once,
  one_instance_only,
  malformed_record,
  two_kernels_of_one_id,
  bound_to_a_thread,
  leaves_a_thread,
  leaves_a_file,
  takes_a_signal,
  sets_rounding,
  sets_the_locale,
  leaks_its_instance,
  needs_every_service,
  refuses_silently,
  uses_absent_evaluation,
  uses_what_older_tables_lack,
  wants_tables_of_one_size,
  wants_the_host_it_knows,
  alias_out_of_range,
  kernel_of_no_operator,
  wrong_values,
  writes_past_its_end,
  changes_its_input,
  needs_alignment,
  lies_about_in_place,
  hides_nan,
  counts_runs,
  keeps_state_in_its_plan,
  declines_silently,
  ignores_failed_packing,
  uses_the_graph_unasked,
  leaks_its_plan,
  infers_too_little,
  wrong_decomposition,
  infers_without_looking,
  counts_otherwise,
  device_opens_once,
  alignment_of_three,
  link_is_no_number,
  loses_the_last_bytes,
  ignores_the_offset,
  maps_elsewhere,
  copies_to_the_beginning,
  copies_nothing_from_peers,
  gives_any_memory,
  another_status_for_memory,
  uploads_at_once,
  finish_leaves_some,
  wait_does_nothing,
  synchronize_does_nothing,
  first_record_counts,
  works_outside,
  fails_only_once,
  goes_on_after_a_failure,
  explains_nothing,
  closing_one_clears_all,
  device_of_one_thread,
  leaks_device_memory,
  device_leaves_a_thread,
  device_kernel_is_wrong,
  device_kernel_writes_on,
  device_kernel_not_in_place,
  device_plan_keeps_operands,
  one_buffer_for_all,
  default_out_of_bounds,
  pass_fails,
  pass_changes_values,
  pass_counts_runs,
  pass_is_never_done,
  analysis_edits,
  option_breaks_it,
  ignores_the_limit,
  broken_rule,
  transform_crashes,
  probe_above_100,
  claims_everything,
  reads_past_the_end,
  trusts_the_file,
  exports_other_numbers,
  says_it_wrote,
  buffers_overlap,
  buffers_unaligned,
  loses_a_tensor,
  trusts_the_tensor_file,
  crashes_on_long_files,
  fault_count
};

#ifndef FAULT
#define FAULT none
#endif
constexpr Fault fault = FAULT;
constexpr bool is(Fault f) { return fault == f; }

constexpr tn_str text(const char* zero_terminated) {
  return {zero_terminated, __builtin_strlen(zero_terminated)};
}
inline void tell(const tn_diag* diag, const char* what) {
  diag->report(diag->context, TN_SEVERITY_ERROR, text(""), text(""), text(what));
}

// What every instance holds.
struct Services {
  const tn_host* host = nullptr;
  const tn_graph_api* graph = nullptr;
  const tn_edit_api* edit = nullptr;
  const tn_files_api* files = nullptr;
  const tn_eval_api* eval = nullptr;
};
inline Services& of(void* instance) { return *static_cast<Services*>(instance); }
template <class Table>
const Table* service(const tn_host* host, const char* id) {
  return static_cast<const Table*>(host->get_interface(host, id));
}

const tn_op_list* ops();
const tn_kernel_list* kernels();
const tn_pass_list* passes();
const tn_transform_list* transforms();
const tn_frontend_list* frontends();
const tn_exporter_list* exporters();
const tn_planner_list* planners();
const tn_tensor_file_list* tensor_files();
const tn_device_list* devices();
const tn_kernel_record& device_kernel(const tn_operand_rule* rules, const tn_alias* in_place);

}  // namespace bad
