#include "core/check/catalog.hpp"

#include <algorithm>

#include "core/check/levels.hpp"

namespace tenon::check {

namespace {

constexpr const char* refuses = "refuses the plugin";
constexpr const char* nothing = "nothing";

constexpr Check checks[] = {
    {"1.1", "the file is a whole shared library for this machine", "it cannot be loaded", refuses,
     Needs::file, check_is_library},
    {"1.2", "it exports tenon_plugin_entry and nothing else",
     "its symbols are mixed up with those of other plugins", "refuses it without the entry", Needs::file,
     check_one_export},
    {"1.3", "no symbol is unique (STB_GNU_UNIQUE)", "two plugins share one static variable", nothing,
     Needs::file, check_no_unique_symbols},
    {"1.4", "it wants no symbol of the host's", "it loads in no other host, or in none", refuses, Needs::file,
     check_nothing_of_ours_undefined},
    {"1.5", "it is built without a sanitizer that the host lacks", "the sanitizer ends the program", refuses,
     Needs::file, check_no_sanitizer},
    {"1.6", "no text relocations", "its code cannot be shared, and hardened systems refuse it", nothing,
     Needs::file, check_no_text_relocations},
    {"1.7", "no executable stack", "the whole program's stacks become executable, or loading fails", nothing,
     Needs::file, check_no_executable_stack},
    {"1.8", "no segment is writable and executable", "hardened systems refuse it", nothing, Needs::file,
     check_no_writable_code},
    {"1.9", "libraries are looked for in no folder of the build machine",
     "it finds other libraries, or none, elsewhere", nothing, Needs::file, check_search_paths},
    {"1.10", "a sidecar lies beside it and can be read",
     "listings and errors about missing operators do not know the plugin", "refuses a broken one",
     Needs::file, check_sidecar_is_there},
    {"1.11", "the sidecar says what the table says", "hosts decide by what is not so",
     "refuses another id, version, ABI or interface", Needs::loaded, check_sidecar_equals_table},

    {"2.1", "it loads", "it cannot be used", refuses, Needs::file, check_loads},
    {"2.2", "its table is whole", "it cannot be used", refuses, Needs::file, check_table_is_good},
    {"2.3", "the entry is pure: one table, 100 times", "hosts read a table that changes", refuses,
     Needs::loaded, check_entry_is_pure},
    {"2.4", "hosts of another major get no table", "a later host calls functions of another layout", nothing,
     Needs::loaded, check_refuses_other_majors},
    {"2.5", "interface ids that do not exist give NULL", "a later host takes a table for another",
     "refuses the plainest case", Needs::loaded, check_unknown_interfaces},
    {"2.6", "interfaces that are listed are there, and those that are there are listed",
     "hosts and listings do not know what it has", "refuses missing ones", Needs::loaded,
     check_listed_interfaces},
    {"2.7", "it opens and closes", "it cannot be used", refuses, Needs::loaded, check_opens},
    {"2.8", "it opens on the oldest host that it says it can do with",
     "it is refused, or crashes, on hosts it says it supports", nothing, Needs::loaded,
     check_opens_on_its_minimum},
    {"2.9", "it opens and closes ten times", "a second session in a program fails", nothing, Needs::loaded,
     check_opens_ten_times},
    {"2.10", "two instances live side by side", "two pipelines in a program disturb one another", nothing,
     Needs::opened, check_opens_twice_at_once},
    {"2.11", "every record is well formed and has an id of its own", "the record is left out",
     "leaves the record out", Needs::opened, check_records},
    {"2.12", "functions tagged [any] answer two threads as they answer one", "wrong answers now and then",
     nothing, Needs::opened, check_any_thread},
    {"2.13", "no thread is left after close", "the program cannot end, or crashes when it does", nothing,
     Needs::opened, check_leaves_no_threads},
    {"2.14", "no file is left open, and none of the host's is closed", "the program runs out of descriptors",
     nothing, Needs::opened, check_leaves_no_files},
    {"2.15", "signal handlers and the signal mask stay", "the program's own handlers do not run", nothing,
     Needs::file, check_leaves_signals},
    {"2.16", "rounding and flushing of denormals stay", "all of the program computes otherwise", nothing,
     Needs::file, check_leaves_floating_point},
    {"2.17", "locale, working folder, umask and environment stay",
     "files and numbers of the program are read and written otherwise", nothing, Needs::file,
     check_leaves_process_state},
    {"2.18", "memory does not grow with every open and close", "programs that run for long run out of it",
     nothing, Needs::opened, check_leaks_nothing},

    {"3.1", "it opens, or says why not, when a service of the host is absent",
     "older and smaller hosts crash", nothing, Needs::opened, check_absent_services_at_open},
    {"3.2", "it works, or answers an error, when a service of the host is absent",
     "older and smaller hosts crash", nothing, Needs::engine, check_absent_services_at_work},
    {"3.3", "it asks before it uses what older tables do not have", "older hosts crash", nothing,
     Needs::engine, check_smaller_tables},
    {"3.4", "larger tables of newer hosts are no fault", "newer hosts are refused for nothing", nothing,
     Needs::engine, check_larger_tables},
    {"3.5", "a newer and larger tn_host is no fault", "newer hosts are refused for nothing", nothing,
     Needs::engine, check_larger_host},

    {"4.1", "kernel records fit their operators", "the kernel is never chosen, or for what it cannot do",
     "leaves it out where the rules refuse", Needs::engine, check_kernel_records},
    {"4.2", "kernels compute what another kernel, or the operator's decomposition, computes", "wrong results",
     "`tenon run --verify` compares", Needs::engine, check_kernel_values},
    {"4.3", "kernels write their results and nothing else", "memory of other nodes is overwritten",
     "TENON_GUARD=1 tells", Needs::engine, check_kernel_bounds},
    {"4.4", "operands aligned to their elements are enough", "crashes on the caller's own buffers", nothing,
     Needs::engine, check_kernel_alignment},
    {"4.5", "aliases hold: in place and apart it computes the same", "wrong results where memory is reused",
     "checks only that the sizes are equal", Needs::engine, check_kernel_aliases},
    {"4.6", "NaN, infinities, denormals and zeros with a sign come out as elsewhere",
     "a fault upstream is hidden, or one appears", nothing, Needs::engine, check_kernel_odd_numbers},
    {"4.7",
     "kernels flagged deterministic give the same bits, in any order of tiles, for any number of workers",
     "results that cannot be reproduced", nothing, Needs::engine, check_kernel_determinism},
    {"4.8", "one plan runs on several threads at once", "wrong results in servers", nothing, Needs::engine,
     check_kernels_at_once},
    {"4.9", "nodes next to those it takes are declined with a reason, or done right",
     "crashes on other models; `tenon explain` cannot say why", nothing, Needs::engine,
     check_kernels_outside},
    {"4.10", "it answers an error when memory cannot be had", "crashes on large models", nothing,
     Needs::engine, check_failing_allocation},
    {"4.11", "it asks before it uses what an older tn_plan_view does not have", "older hosts crash", nothing,
     Needs::engine, check_plan_view_sizes},
    {"4.12", "plans free their state", "programs with many shapes run out of memory", nothing, Needs::engine,
     check_plans_free_their_state},
    {"4.13", "types and shapes inferred are those that come out", "buffers of the wrong size: the run ends",
     "ends the run", Needs::engine, check_inference_equals_run},
    {"4.14", "decompositions compute the same", "results hang on which kernels are installed", nothing,
     Needs::engine, check_decompositions},
    {"4.15", "inference takes any operands: types, or why not", "a damaged model crashes the program",
     nothing, Needs::engine, check_inference_of_odd_nodes},
    {"4.16", "devices are counted the same each time, and each opens, closes and opens again",
     "runs with it fail, or a lost device stays lost", "says why it does not open", Needs::opened,
     check_devices_open},
    {"4.17", "what a device says of itself is sound, and stays", "nodes are placed by what is not so",
     "refuses an alignment that is no power of two", Needs::opened, check_device_properties},
    {"4.18", "a device's memory gives back every byte that was put there, and no other", "wrong results",
     nothing, Needs::opened, check_device_memory},
    {"4.19", "copies on a device are exact, within a buffer, between two, and from a peer", "wrong results",
     nothing, Needs::opened, check_device_copies},
    {"4.20", "memory that a device does not have is refused with TN_ERR_MEMORY, and it works on",
     "a batch too large ends the program, not the run", "ends the run", Needs::opened,
     check_device_memory_limit},
    {"4.21", "a stream does its work in order, and finish waits for all of it", "wrong results now and then",
     nothing, Needs::opened, check_device_stream_order},
    {"4.22", "events order streams, and synchronize waits for them", "wrong results now and then", nothing,
     Needs::opened, check_device_events},
    {"4.23", "work outside of a buffer fails its stream, every time it is asked, and nothing else",
     "memory of others is overwritten, without a word", "ends the run with what explain says", Needs::opened,
     check_device_faults},
    {"4.24", "two devices open at once, and streams of several threads, do not disturb one another",
     "wrong results in servers", nothing, Needs::opened, check_devices_at_once},
    {"4.25", "what a device gives back and closes is gone: memory, threads, files",
     "programs that run for long run out of it", nothing, Needs::opened, check_device_leaks},
    {"4.26",
     "kernels of a device compute on it what another kernel, or the operator's decomposition, computes",
     "wrong results", nothing, Needs::engine, check_device_kernel_values},
    {"4.27", "kernels of a device write their results and nothing else, in place too",
     "memory of other nodes is overwritten", nothing, Needs::engine, check_device_kernel_bounds},
    {"4.28", "one plan of a device's kernel is in several streams at once", "wrong results in servers",
     nothing, Needs::engine, check_device_kernels_at_once},
    {"4.29", "graphs compute over the device what they compute on the host", "wrong results",
     "ends the run where the device says that it failed", Needs::engine, check_graphs_on_devices},

    {"5.1", "declared options are whole: defaults within bounds, documented", "`tenon passes` is wrong",
     nothing, Needs::opened, check_pass_options},
    {"5.2", "graphs are sound after a pass", "the pass does nothing: it is undone", "undoes the pass",
     Needs::engine, check_passes_keep_graphs_sound},
    {"5.3", "values are the same after a pass", "wrong results", "`tenon verify` compares", Needs::engine,
     check_passes_keep_values},
    {"5.4", "a pass gives the same graph each time", "artifacts and locks cannot be reproduced", nothing,
     Needs::engine, check_passes_are_deterministic},
    {"5.5", "passes flagged idempotent change nothing the second time", "pipelines that repeat never end",
     nothing, Needs::engine, check_passes_are_idempotent},
    {"5.6", "analyses do not edit", "a report changes what it is about", nothing, Needs::engine,
     check_analyses_do_not_edit},
    {"5.7", "the order of nodes does not matter", "models of another exporter come out wrong", nothing,
     Needs::engine, check_passes_in_any_order},
    {"5.8", "options at their bounds are options", "a setting that is allowed breaks the model",
     "undoes the pass", Needs::engine, check_pass_option_bounds},
    {"5.9", "passes stop when they are told: cancelled, or at the limit of rewrites",
     "`--bisect-limit` cannot find the culprit", nothing, Needs::engine, check_passes_can_be_stopped},
    {"5.10", "the rules it carries are right, and proved", "wrong results",
     "proves them at their first match", Needs::opened, check_rules},
    {"5.11", "transforms take any arguments: a result, or why not", "a rule crashes the program", nothing,
     Needs::engine, check_transforms},

    {"6.1", "probe answers 0 to 100", "the file is read by somebody else", nothing, Needs::opened,
     check_probe_range},
    {"6.2", "probe does not claim what is somebody else's", "other formats cannot be read",
     "a tie is an error", Needs::engine, check_probe_claims},
    {"6.3", "a model cut short is an error with a reason", "half a download crashes the program", nothing,
     Needs::engine, check_model_cut_short},
    {"6.4", "a damaged model is an error with a reason, or a sound graph",
     "a damaged file crashes the program", nothing, Needs::engine, check_model_damaged},
    {"6.5", "what an exporter writes computes the same when it is read", "models change on the way", nothing,
     Needs::engine, check_exporters_round_trip},
    {"6.6", "an exporter that cannot write says so", "a lost file is noticed too late", nothing,
     Needs::engine, check_exporters_cannot_write},
    {"6.7", "planners place every buffer once, aligned, and none over another", "the plan is not used",
     "drops a plan that overlaps", Needs::opened, check_planners},
    {"6.8", "tensors that were written are read back, bit by bit", "wrong inputs and results", nothing,
     Needs::engine, check_tensor_files_round_trip},
    {"6.9", "a damaged tensor file is an error with a reason, or a tensor",
     "a damaged file crashes the program", nothing, Needs::engine, check_tensor_files_damaged},

    {"7.1", "mangled models", "a hostile file crashes the program", nothing, Needs::engine, fuzz_models},
    {"7.2", "mangled tensor files", "a hostile file crashes the program", nothing, Needs::engine,
     fuzz_tensor_files},
    {"7.3", "passes one after another on graphs drawn at random", "models nobody tried come out wrong",
     nothing, Needs::engine, fuzz_passes},
    {"7.4", "kernels on nodes drawn at random", "models nobody tried crash", nothing, Needs::engine,
     fuzz_kernels},
};

}  // namespace

std::span<const Check> all_checks() { return checks; }

std::string_view level_name(int level) {
  static constexpr std::string_view names[level_count] = {
      "file", "handshake", "host variants", "kernels, operators and devices", "passes", "files", "fuzz"};
  return names[level - 1];
}

std::vector<const Check*> select_checks(const std::vector<std::string>& words, int highest_level,
                                        std::vector<std::string>& unknown) {
  std::vector<const Check*> selected;
  std::vector<bool> known(words.size(), false);
  for (const Check& check : all_checks()) {
    bool wanted = words.empty() && check.level() <= highest_level;
    for (size_t i = 0; i < words.size(); ++i) {
      if (words[i] != check.id && words[i] != std::to_string(check.level())) continue;
      known[i] = true;
      wanted = true;
    }
    if (wanted) selected.push_back(&check);
  }
  for (size_t i = 0; i < words.size(); ++i)
    if (!known[i]) unknown.push_back(words[i]);
  return selected;
}

}  // namespace tenon::check
