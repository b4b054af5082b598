// Each plugin here is right but for one fault. `tenon plugins check` sees it first at the check that is for
// it, and a run with the plugin ends in order: it works, or says why not.
#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "test_paths.hpp"

namespace fs = std::filesystem;

namespace {

struct Row {
  const char* fault;
  const char* check;  // the first that fails
};

// CMake builds one plugin for each row.
constexpr Row rows[] = {
    {"cut_short", "1.1"},
    {"exports_more", "1.2"},
    {"no_entry", "1.2"},
    {"unique_symbol", "1.3"},
    {"wants_host_symbol", "1.4"},
    {"needs_sanitizer", "1.5"},
    {"text_relocations", "1.6"},
    {"executable_stack", "1.7"},
    {"build_folder_rpath", "1.9"},
    {"no_sidecar", "1.10"},
    {"sidecar_of_another", "1.11"},
    {"throws_on_load", "2.1"},
    {"crashes_on_load", "2.1"},
    {"exits_on_load", "2.1"},
    {"hangs_on_load", "2.1"},
    {"small_table", "2.2"},
    {"lists_what_it_lacks", "2.2"},
    {"changes_its_table", "2.3"},
    {"serves_every_major", "2.4"},
    {"answers_similar_ids", "2.5"},
    {"hides_an_interface", "2.6"},
    {"fails_in_open", "2.7"},
    {"crashes_in_open", "2.7"},
    {"opens_once", "2.9"},
    {"one_instance_only", "2.10"},
    {"malformed_record", "2.11"},
    {"two_kernels_of_one_id", "2.11"},
    {"bound_to_a_thread", "2.12"},
    {"leaves_a_thread", "2.13"},
    {"leaves_a_file", "2.14"},
    {"takes_a_signal", "2.15"},
    {"sets_rounding", "2.16"},
    {"sets_the_locale", "2.17"},
    {"leaks_its_instance", "2.18"},
    {"needs_every_service", "3.1"},
    {"refuses_silently", "3.1"},
    {"uses_absent_evaluation", "3.2"},
    {"uses_what_older_tables_lack", "3.3"},
    {"wants_tables_of_one_size", "3.4"},
    {"wants_the_host_it_knows", "3.5"},
    {"alias_out_of_range", "4.1"},
    {"kernel_of_no_operator", "4.1"},
    {"wrong_values", "4.2"},
    {"writes_past_its_end", "4.3"},
    {"changes_its_input", "4.3"},
    {"needs_alignment", "4.4"},
    {"lies_about_in_place", "4.5"},
    {"hides_nan", "4.6"},
    {"counts_runs", "4.7"},
    {"keeps_state_in_its_plan", "4.8"},
    {"declines_silently", "4.9"},
    {"ignores_failed_packing", "4.10"},
    {"uses_the_graph_unasked", "4.11"},
    {"leaks_its_plan", "4.12"},
    {"infers_too_little", "4.13"},
    {"wrong_decomposition", "4.14"},
    {"infers_without_looking", "4.15"},
    {"counts_otherwise", "4.16"},
    {"device_opens_once", "4.16"},
    {"alignment_of_three", "4.17"},
    {"link_is_no_number", "4.17"},
    {"loses_the_last_bytes", "4.18"},
    {"ignores_the_offset", "4.18"},
    {"maps_elsewhere", "4.18"},
    {"copies_to_the_beginning", "4.19"},
    {"copies_nothing_from_peers", "4.19"},
    {"gives_any_memory", "4.20"},
    {"another_status_for_memory", "4.20"},
    {"uploads_at_once", "4.21"},
    {"finish_leaves_some", "4.21"},
    {"wait_does_nothing", "4.22"},
    {"synchronize_does_nothing", "4.22"},
    {"first_record_counts", "4.22"},
    {"works_outside", "4.23"},
    {"fails_only_once", "4.23"},
    {"goes_on_after_a_failure", "4.23"},
    {"explains_nothing", "4.23"},
    {"closing_one_clears_all", "4.24"},
    {"device_of_one_thread", "4.24"},
    {"leaks_device_memory", "4.25"},
    {"device_leaves_a_thread", "4.25"},
    {"device_kernel_is_wrong", "4.26"},
    {"device_kernel_writes_on", "4.27"},
    {"device_kernel_not_in_place", "4.27"},
    {"device_plan_keeps_operands", "4.28"},
    {"one_buffer_for_all", "4.29"},
    {"default_out_of_bounds", "5.1"},
    {"pass_fails", "5.2"},
    {"pass_changes_values", "5.3"},
    {"pass_counts_runs", "5.4"},
    {"pass_is_never_done", "5.5"},
    {"analysis_edits", "5.6"},
    {"option_breaks_it", "5.8"},
    {"ignores_the_limit", "5.9"},
    {"broken_rule", "5.10"},
    {"transform_crashes", "5.11"},
    {"probe_above_100", "6.1"},
    {"claims_everything", "6.2"},
    {"reads_past_the_end", "6.3"},
    {"trusts_the_file", "6.4"},
    {"exports_other_numbers", "6.5"},
    {"says_it_wrote", "6.6"},
    {"buffers_overlap", "6.7"},
    {"buffers_unaligned", "6.7"},
    {"loses_a_tensor", "6.8"},
    {"trusts_the_tensor_file", "6.9"},
    {"crashes_on_long_files", "7.1"},
};

const fs::path built = fs::path(tenon::test::build_dir()) / "tests" / "bad_plugins";
const std::string tenon_program = tenon::test::build_dir() + "/bin/tenon";
const std::string samples = tenon::test::source_dir() + "/tests/bad_plugins/samples";

struct Ended {
  int code = -1;  // of exit; -1: by a signal
  std::string text;
};
Ended run(const std::string& command, const fs::path& folder) {
  const fs::path out = folder / "output.txt";
  const int status = std::system((command + " > " + out.string() + " 2>&1").c_str());
  std::ostringstream text;
  text << std::ifstream(out).rdbuf();
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text.str()};
}

nlohmann::json read_json(const fs::path& file) { return nlohmann::json::parse(std::ifstream(file)); }

// A folder with the plugin and a sidecar as a vendor ships them.
fs::path shipped(const std::string& fault, const fs::path& folder) {
  const bool cut = fault == "cut_short", other = fault == "sidecar_of_another";
  const fs::path library = folder / ("lib" + fault + ".so");
  fs::copy_file(built / (cut ? "libnone.so" : "lib" + fault + ".so"), library,
                fs::copy_options::overwrite_existing);
  if (cut) fs::resize_file(library, fs::file_size(library) / 2);
  if (fault == "no_sidecar") return library;
  const fs::path sidecar = folder / ("lib" + fault + ".plugin.json");
  const std::string tool = tenon::test::build_dir() + "/bin/tenon-sidecar ";
  // What cannot be loaded gets the sidecar of the good one with its name.
  const bool loads = fault != "hangs_on_load" && fault != "leaves_a_thread" && !cut &&
                     run("TENON_TEST_QUIET=1 " + tool + library.string(), folder).code == 0 &&
                     fs::exists(sidecar);
  if (!loads) {
    fs::copy_file(built / "libnone.so", folder / "libnone.so", fs::copy_options::overwrite_existing);
    REQUIRE(run(tool + (folder / "libnone.so").string(), folder).code == 0);
    nlohmann::json json = read_json(folder / "libnone.plugin.json");
    json["id"] = "test.bad." + fault;
    json["name"] = fault;
    std::ofstream(sidecar) << json.dump(2);
  }
  if (other) {
    nlohmann::json json = read_json(sidecar);
    json["version"] = "9.9.9";
    std::ofstream(sidecar) << json.dump(2);
  }
  return library;
}

fs::path fresh_folder(const std::string& name) {
  const fs::path folder = fs::path(tenon::test::build_dir()) / "tests" / "bad_plugins_run" / name;
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

// A float32 vector of eight zeros.
std::string npy_of_zeros() {
  std::string head = "{'descr': '<f4', 'fortran_order': False, 'shape': (8,), }";
  head.resize(117, ' ');
  return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + head + '\n' + std::string(32, '\0');
}

bool is_built(const std::string& fault) {
  return fault == "cut_short" || fs::exists(built / ("lib" + fault + ".so"));
}

}  // namespace

TEST_CASE("each fault is seen first by the check that is for it") {
  for (const Row& row : rows) {
    const std::string fault = row.fault;
    if (!is_built(fault)) continue;  // in a build with sanitizers
    DYNAMIC_SECTION(fault) {
      const fs::path folder = fresh_folder(fault);
      const fs::path library = shipped(fault, folder);
      // A limit that only what never comes back reaches.
      const std::string limit = fault == "hangs_on_load" ? " --timeout 20" : "";
      const Ended ended =
          run(tenon_program + " plugins check " + library.string() + " --first --json --samples " + samples +
                  " --out " + folder.string() + limit,
              folder);
      INFO(ended.text);
      REQUIRE(ended.code == 1);
      const nlohmann::json report = nlohmann::json::parse(ended.text);
      std::string first;
      for (const auto& check : report.at("checks"))
        if (first.empty() && check.at("outcome") == "failed") first = check.at("id");
      CHECK(first == row.check);
      CHECK(report.at("passed") == false);
    }
  }
}

TEST_CASE("the plugin without a fault passes every check") {
  const fs::path folder = fresh_folder("none");
  const Ended ended = run(tenon_program + " plugins check " + shipped("none", folder).string() +
                              " --json --samples " + samples + " --out " + folder.string(),
                          folder);
  INFO(ended.text);
  CHECK(ended.code == 0);
  const nlohmann::json report = nlohmann::json::parse(ended.text);
  for (const auto& check : report.at("checks")) {
    INFO(check.dump(2));
    CHECK((check.at("outcome") == "passed" || check.at("outcome") == "nothing to check"));
  }
}

TEST_CASE("a crash leaves its input, and one command sees it again") {
  const fs::path folder = fresh_folder("reproducer");
  const Ended ended =
      run(tenon_program + " plugins check " + shipped("crashes_on_long_files", folder).string() +
              " --only 7.1 --json --samples " + samples + " --out " + folder.string(),
          folder);
  INFO(ended.text);
  REQUIRE(ended.code == 1);
  const nlohmann::json check = nlohmann::json::parse(ended.text).at("checks").at(0);
  const nlohmann::json finding = check.at("findings").at(0);
  CHECK(finding.at("text").get<std::string>().find("SIGABRT") != std::string::npos);
  REQUIRE(finding.contains("reproducer"));
  CHECK(fs::file_size(finding.at("reproducer").get<std::string>()) > 50);
  const std::string again = check.at("repro");
  CHECK(again.find("--only 7.1 --seed 1") != std::string::npos);
  const Ended repeated =
      run(tenon_program + again.substr(again.find(' ')) + " --json --out " + folder.string(), folder);
  INFO(repeated.text);
  CHECK(nlohmann::json::parse(repeated.text).at("checks").at(0).at("findings").at(0) == finding);
}

TEST_CASE("a run with a bad plugin ends in order: it works, or says why not") {
  for (const Row& row : rows) {
    const std::string fault = row.fault, check = row.check;
    if (!is_built(fault)) continue;
    // On its device too, where that is what is bad.
    const bool has_bad_device = check.size() == 4 && check[0] == '4' && check >= "4.16";
    for (const bool on_device : {false, true}) {
      if (on_device && !has_bad_device) continue;
      DYNAMIC_SECTION(fault << (on_device ? " on its device" : "")) {
        const fs::path folder = fresh_folder("run_" + fault);
        const fs::path library = shipped(fault, folder);
        nlohmann::json manifest = {
            {"schema", "tenon.pipeline/1"},
            {"plugins",
             {{{"path", library.string()}}, "onnx", "ops", "fusion", "rules", "memory", "tensors"}},
            {"model", {{"path", samples + "/scale.graph"}}}};
        if (on_device) manifest["devices"] = {{"use", {"bad"}}, {"pin", {{"*", "bad"}}}};
        std::ofstream(folder / "pipeline.json") << manifest.dump(2);
        std::ofstream(folder / "x.npy", std::ios::binary) << npy_of_zeros();
        const Ended ended =
            run("TENON_CACHE_DIR=" + folder.string() + " TENON_SCAN_TIMEOUT_MS=20000 " + tenon_program +
                    " run " + (folder / "pipeline.json").string() + " --inputs " +
                    (folder / "x.npy").string() + " --outputs " + (folder / "out.npz").string(),
                folder);
        INFO(ended.text);
        CHECK((ended.code == 0 || ended.code == 1 || ended.code == 2));
        if (ended.code != 0) {
          // Named, with what is wrong.
          CHECK(ended.text.find("error") != std::string::npos);
          const bool names_it = ended.text.find(fault) != std::string::npos ||
                                ended.text.find("scale") != std::string::npos ||
                                ended.text.find("device bad") != std::string::npos ||
                                ended.text.find("bad.json") != std::string::npos;
          CHECK(names_it);
        } else if (on_device) {
          CHECK(ended.text.find("devices  bad 1 node") != std::string::npos);
        }
      }
    }
  }
}

TEST_CASE("the documents have every check as the program has it") {
  const fs::path folder = fresh_folder("list");
  const Ended ended = run(tenon_program + " plugins check --list --json", folder);
  REQUIRE(ended.code == 0);
  std::ostringstream text;
  text << std::ifstream(tenon::test::source_dir() + "/docs/plugin-checks.md").rdbuf();
  const std::string page = text.str();
  for (const auto& check : nlohmann::json::parse(ended.text)) {
    const std::string row =
        "| " + check.at("id").get<std::string>() + " | " + check.at("title").get<std::string>() + " | " +
        check.at("consequence").get<std::string>() + " | " + check.at("host").get<std::string>() + " |";
    INFO(row);
    CHECK(page.find(row) != std::string::npos);
  }
}

TEST_CASE("what is asked for in a wrong way is said, with exit code 2") {
  const fs::path folder = fresh_folder("usage");
  const auto refused = [&](const std::string& arguments, const char* why) {
    const Ended ended = run(tenon_program + " plugins check " + arguments, folder);
    INFO(ended.text);
    CHECK(ended.code == 2);
    CHECK(ended.text.find(why) != std::string::npos);
  };
  refused("no/such/libx.so", "there is no such file");
  refused("opps", "did you mean 'ops'");
  refused("ops --only 9.9", "there is no check or level 9.9");
  refused("ops --samples no-such-folder", "is no folder");
  refused("", "names no plugin");
}
