// Level 2: the entry, the table, open and close.
#include <tenon/abi/frontend.h>
#include <tenon/abi/memory.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <set>
#include <thread>

#include "core/base/text.hpp"
#include "core/check/checker.hpp"
#include "core/check/levels.hpp"
#include "core/plugin/plugin_table.hpp"

namespace tenon::check {

namespace {

tenon_plugin_entry_fn entry_of(Checker& checker) {
  checker.plugin();  // so that what goes wrong in there is another check's
  return std::get<tenon_plugin_entry_fn>(load_library(checker.request().library));
}

std::string texts_of(const Diagnostics& said) {
  std::string text;
  for (const Diagnostic& one : said.all()) text += (text.empty() ? "" : "; ") + one.text;
  return text.empty() ? "it did not say why" : text;
}

// Opens and closes once; false after a finding.
bool open_and_close(Checker& checker, const tn_plugin& plugin, const tn_host* host) {
  Diagnostics said;
  void* instance = nullptr;
  const tn_status status = plugin.open(host, said.abi(), &instance);
  if (status != TN_OK) {
    checker.finding(fmt::format("open answers status {}: {}", status, texts_of(said)));
    return false;
  }
  plugin.close(instance);
  return true;
}

constexpr const char* known_interfaces[] = {"tenon.ops/1",
                                            "tenon.kernels.draft/1",
                                            "tenon.passes/1",
                                            "tenon.rules/1",
                                            "tenon.transforms.draft/1",
                                            "tenon.frontends/1",
                                            "tenon.exporters.draft/1",
                                            "tenon.memory.draft/1",
                                            "tenon.tensor-files.draft/1",
                                            "tenon.rule-engine.draft/1",
                                            "tenon.device.draft/1"};

}  // namespace

void check_loads(Checker& checker) {
  if (!checker.begin("loading")) return;
  const auto loaded = load_library(checker.request().library);
  if (const auto* refusal = std::get_if<Refusal>(&loaded))
    checker.finding(refusal->reason + "; " + refusal->remedy);
}

void check_table_is_good(Checker& checker) {
  const auto loaded = load_library(checker.request().library);
  const auto* entry = std::get_if<tenon_plugin_entry_fn>(&loaded);
  if (entry == nullptr || !checker.begin("the table")) return;  // 2.1 tells
  const auto checked = check_table(*entry);
  if (const auto* refusal = std::get_if<Refusal>(&checked)) {
    checker.finding(refusal->reason + "; " + refusal->remedy);
    return;
  }
  const tn_plugin& plugin = *std::get<const tn_plugin*>(checked);
  if (plugin.min_host_minor > plugin.built_host_minor)
    checker.finding(fmt::format("it needs a host of minor {} but was built with {}; the minimum is too high",
                                plugin.min_host_minor, plugin.built_host_minor));
  const std::string_view id = view(plugin.id), name = view(plugin.name);
  if (id.find('.') == std::string_view::npos)
    checker.finding(
        fmt::format("its id {} has no dot; use a name that you own, such as com.acme.kernels", quoted(id)));
  if (name.find_first_of("/ .*?\"") != std::string_view::npos)
    checker.finding(fmt::format("its name {} cannot be written in a manifest; use letters, digits, - and _",
                                quoted(name)));
}

void check_entry_is_pure(Checker& checker) {
  const tenon_plugin_entry_fn entry = entry_of(checker);
  if (!checker.begin("100 calls of the entry")) return;
  const tn_plugin* const first = entry(TN_ABI_MAJOR);
  std::string bytes(reinterpret_cast<const char*>(first), sizeof(tn_plugin));
  for (int i = 0; i < 100; ++i) {
    const tn_plugin* const again = entry(TN_ABI_MAJOR);
    if (again != first) {
      checker.finding(fmt::format("call {} returns another table than the first", i + 2));
      return;
    }
    if (std::memcmp(again, bytes.data(), bytes.size()) != 0) {
      checker.finding(fmt::format("the table changed between calls 1 and {}", i + 2));
      return;
    }
  }
}

void check_refuses_other_majors(Checker& checker) {
  const tenon_plugin_entry_fn entry = entry_of(checker);
  for (const uint32_t major : {0u, TN_ABI_MAJOR + 1, TN_ABI_MAJOR + 2, 99u, UINT32_MAX}) {
    if (!checker.begin(fmt::format("a host of major {}", major))) continue;
    if (const tn_plugin* other = entry(major); other != nullptr && other->abi_major != major)
      checker.finding(
          fmt::format("it hands a table of major {} to a host of major {}; return NULL for all "
                      "majors that it was not built for",
                      other->abi_major, major));
  }
}

void check_unknown_interfaces(Checker& checker) {
  const tn_plugin& plugin = checker.plugin();
  std::vector<std::string> ids = {"",
                                  "x",
                                  "tenon",
                                  "tenon.no-such-interface/1",
                                  "tenon.kernels.draft/999",
                                  "TENON.KERNELS.DRAFT/1",
                                  std::string(70000, 'a'),
                                  "\xff\xfe\n"};
  for (uint32_t i = 0; i < plugin.interface_count; ++i) {
    const std::string id = plugin.interfaces[i];
    ids.push_back(id + "0");
    ids.push_back(id.substr(0, id.size() - 1));
    ids.push_back(" " + id);
  }
  for (const std::string& id : ids) {
    const std::string shown = id.size() > 60 ? fmt::format("an id of {} bytes", id.size()) : quoted(id);
    if (checker.begin(shown) && plugin.get_interface(id.c_str()) != nullptr)
      checker.finding("it answers an interface that does not exist; compare whole ids");
  }
}

void check_listed_interfaces(Checker& checker) {
  const tn_plugin& plugin = checker.plugin();
  std::set<std::string> listed;
  for (uint32_t i = 0; i < plugin.interface_count; ++i) {
    if (!checker.begin(quoted(plugin.interfaces[i]))) continue;
    if (!listed.insert(plugin.interfaces[i]).second) checker.finding("it is listed twice");
    const void* const table = plugin.get_interface(plugin.interfaces[i]);
    if (table != plugin.get_interface(plugin.interfaces[i])) {
      checker.finding("it answers another table each time");
      continue;
    }
    if (*static_cast<const uint32_t*>(table) < 2 * sizeof(uint32_t))
      checker.finding("its table does not begin with its size");
  }
  for (const char* id : known_interfaces) {
    if (listed.count(id) == 0 && plugin.get_interface(id) != nullptr && checker.begin(quoted(id)))
      checker.finding("it is answered but not listed, so `tenon plugins list` does not show it");
  }
}

void check_opens(Checker& checker) {
  const tn_plugin& plugin = checker.plugin();
  CompleteHost& host = checker.host();
  if (checker.begin("open and close"))
    open_and_close(checker, plugin, host.host.make_plugin_host(string(plugin.name), "{}"));
}

void check_opens_on_its_minimum(Checker& checker) {
  const tn_plugin& plugin = checker.plugin();
  CompleteHost& host = checker.host();
  if (!checker.begin(fmt::format("a host of {}.{}", TN_ABI_MAJOR, plugin.min_host_minor))) return;
  // The host's own struct, so that services find the host behind it.
  auto* const older = const_cast<tn_host*>(host.host.make_plugin_host(string(plugin.name), "{}"));
  older->abi_minor = plugin.min_host_minor;
  open_and_close(checker, plugin, older);
}

void check_opens_ten_times(Checker& checker) {
  const tn_plugin& plugin = checker.plugin();
  CompleteHost& host = checker.host();
  for (int i = 1; i <= 10; ++i) {
    if (checker.begin(fmt::format("open and close, time {}", i)) &&
        !open_and_close(checker, plugin, host.host.make_plugin_host(string(plugin.name), "{}")))
      return;
  }
}

void check_opens_twice_at_once(Checker& checker) {
  const tn_plugin& plugin = checker.plugin();
  CompleteHost one, two;
  if (!checker.begin("two instances at once")) return;
  Diagnostics said;
  void* first = nullptr;
  void* second = nullptr;
  const tn_status a = plugin.open(one.host.make_plugin_host(string(plugin.name), "{}"), said.abi(), &first);
  const tn_status b = plugin.open(two.host.make_plugin_host(string(plugin.name), "{}"), said.abi(), &second);
  if (a != TN_OK || b != TN_OK) {
    checker.finding(
        fmt::format("the {} instance does not open: {}", a != TN_OK ? "first" : "second", texts_of(said)));
    if (a == TN_OK) plugin.close(first);
    return;
  }
  plugin.close(first);
  // The second must not lean on the first.
  Registries records;
  records.add_plugin(plugin, second, said);
  for (const FrontendEntry& frontend : records.frontends())
    frontend.record->probe(second, to_abi("model.bin"), reinterpret_cast<const uint8_t*>("abcd"), 4);
  plugin.close(second);
}

void check_records(Checker& checker) {
  const tn_plugin& plugin = checker.plugin();
  void* const instance = checker.instance();
  if (!checker.begin("the lists of records")) return;
  Diagnostics said;
  Registries records;
  records.add_plugin(plugin, instance, said);
  for (const Diagnostic& one : said.all())
    if (one.severity >= TN_SEVERITY_WARNING) checker.finding(one.text);
  std::map<std::string, int> kernel_ids;
  for (const tn_sym op : records.kernel_ops())
    for (const KernelEntry& kernel : records.kernels(op)) {
      if (++kernel_ids[string(kernel.record->id)] == 2)
        checker.finding(fmt::format("two kernels have the id {}", quoted(view(kernel.record->id))));
      if (kernel.record->device.size == 0)
        checker.finding(fmt::format("kernel {} names no device", quoted(view(kernel.record->id))));
    }
}

// What is tagged [any] is called from two threads at once; answers must be those of one thread.
void check_any_thread(Checker& checker) {
  const tenon_plugin_entry_fn entry = entry_of(checker);
  const Registries& records = checker.records();
  const tn_plugin& plugin = checker.plugin();
  if (!checker.begin("entry, get_interface, probe and plan from two threads")) return;
  const std::string sample(4096, '\x2a');
  const std::vector<tn_buffer> buffers = {
      {4096, 64, 0, 2}, {512, 64, 1, 3}, {100, 8, 2, 2}, {8192, 64, 3, 5}, {64, 64, 0, 5}};
  const auto answers = [&](bool reversed) {
    std::vector<std::string> all;
    all.push_back(fmt::format("entry {}", static_cast<const void*>(entry(TN_ABI_MAJOR))));
    for (uint32_t k = 0; k < plugin.interface_count; ++k) {
      const uint32_t i = reversed ? plugin.interface_count - 1 - k : k;
      all.push_back(fmt::format("interface {} {}", i, plugin.get_interface(plugin.interfaces[i])));
    }
    for (const FrontendEntry& frontend : records.frontends())
      all.push_back(fmt::format(
          "probe of {} {}", view(frontend.record->id),
          frontend.record->probe(frontend.instance, to_abi("model.bin"),
                                 reinterpret_cast<const uint8_t*>(sample.data()), sample.size())));
    for (const PlannerEntry& planner : records.planners()) {
      std::vector<uint64_t> offsets(buffers.size());
      Diagnostics said;
      planner.record->plan(
          planner.instance, buffers.data(), static_cast<uint32_t>(buffers.size()), 0,
          [](void* context, uint32_t i, uint64_t offset) {
            auto& out = *static_cast<std::vector<uint64_t>*>(context);
            if (i < out.size()) out[i] = offset;
          },
          &offsets, said.abi());
      std::string text = "plan of " + string(planner.record->id);
      for (const uint64_t offset : offsets) text += " " + std::to_string(offset);
      all.push_back(std::move(text));
    }
    std::sort(all.begin(), all.end());
    return all;
  };
  const std::vector<std::string> expected = answers(false);
  std::atomic<bool> differ{false};
  const auto work = [&](bool reversed) {
    for (int i = 0; i < 200; ++i)
      if (answers(reversed) != expected) differ = true;
  };
  std::thread other(work, true);
  work(false);
  other.join();
  if (differ) checker.finding("from two threads at once it answers differently than from one");
}

}  // namespace tenon::check
