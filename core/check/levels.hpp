// The checks' functions, one file a level or kind.
#pragma once

namespace tenon::check {

class Checker;

// level1_file.cpp
void check_is_library(Checker& checker);
void check_one_export(Checker& checker);
void check_no_unique_symbols(Checker& checker);
void check_nothing_of_ours_undefined(Checker& checker);
void check_no_sanitizer(Checker& checker);
void check_no_text_relocations(Checker& checker);
void check_no_executable_stack(Checker& checker);
void check_no_writable_code(Checker& checker);
void check_search_paths(Checker& checker);
void check_sidecar_is_there(Checker& checker);
void check_sidecar_equals_table(Checker& checker);

// level2_handshake.cpp
void check_loads(Checker& checker);
void check_table_is_good(Checker& checker);
void check_entry_is_pure(Checker& checker);
void check_refuses_other_majors(Checker& checker);
void check_unknown_interfaces(Checker& checker);
void check_listed_interfaces(Checker& checker);
void check_opens(Checker& checker);
void check_opens_on_its_minimum(Checker& checker);
void check_opens_ten_times(Checker& checker);
void check_opens_twice_at_once(Checker& checker);
void check_records(Checker& checker);
void check_any_thread(Checker& checker);
// level2_process.cpp
void check_leaves_no_threads(Checker& checker);
void check_leaves_no_files(Checker& checker);
void check_leaves_signals(Checker& checker);
void check_leaves_floating_point(Checker& checker);
void check_leaves_process_state(Checker& checker);
void check_leaks_nothing(Checker& checker);

// level3_hosts.cpp
void check_absent_services_at_open(Checker& checker);
void check_absent_services_at_work(Checker& checker);
void check_smaller_tables(Checker& checker);
void check_larger_tables(Checker& checker);
void check_larger_host(Checker& checker);

// level4_operators.cpp
void check_inference_equals_run(Checker& checker);
void check_decompositions(Checker& checker);
void check_inference_of_odd_nodes(Checker& checker);
// level4_records.cpp
void check_kernel_records(Checker& checker);
void check_kernels_outside(Checker& checker);
void check_plan_view_sizes(Checker& checker);
void check_failing_allocation(Checker& checker);
void check_plans_free_their_state(Checker& checker);
// level4_kernels.cpp
void check_kernel_values(Checker& checker);
void check_kernel_bounds(Checker& checker);
void check_kernel_alignment(Checker& checker);
void check_kernel_aliases(Checker& checker);
void check_kernel_odd_numbers(Checker& checker);
void check_kernel_determinism(Checker& checker);
void check_kernels_at_once(Checker& checker);
// level4_devices.cpp
void check_devices_open(Checker& checker);
void check_device_properties(Checker& checker);
void check_device_memory(Checker& checker);
void check_device_copies(Checker& checker);
void check_device_memory_limit(Checker& checker);
void check_device_leaks(Checker& checker);
// level4_streams.cpp
void check_device_stream_order(Checker& checker);
void check_device_events(Checker& checker);
void check_devices_at_once(Checker& checker);
// level4_device_faults.cpp
void check_device_faults(Checker& checker);
// level4_device_kernels.cpp
void check_device_kernel_values(Checker& checker);
void check_device_kernel_bounds(Checker& checker);
void check_device_kernels_at_once(Checker& checker);
void check_graphs_on_devices(Checker& checker);

// level5_passes.cpp
void check_pass_options(Checker& checker);
void check_passes_keep_graphs_sound(Checker& checker);
void check_passes_keep_values(Checker& checker);
void check_passes_are_deterministic(Checker& checker);
void check_passes_are_idempotent(Checker& checker);
void check_analyses_do_not_edit(Checker& checker);
void check_passes_in_any_order(Checker& checker);
void check_pass_option_bounds(Checker& checker);
void check_passes_can_be_stopped(Checker& checker);
void check_rules(Checker& checker);
void check_transforms(Checker& checker);

// level6_models.cpp
void check_probe_range(Checker& checker);
void check_probe_claims(Checker& checker);
void check_model_cut_short(Checker& checker);
void check_model_damaged(Checker& checker);
void check_exporters_round_trip(Checker& checker);
void check_exporters_cannot_write(Checker& checker);
// level6_tensors.cpp
void check_planners(Checker& checker);
void check_tensor_files_round_trip(Checker& checker);
void check_tensor_files_damaged(Checker& checker);

// level7_random.cpp
void fuzz_models(Checker& checker);
void fuzz_tensor_files(Checker& checker);
void fuzz_passes(Checker& checker);
void fuzz_kernels(Checker& checker);

}  // namespace tenon::check
