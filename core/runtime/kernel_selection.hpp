// Which kernel runs a node, and why the others do not.
//
// Order: the manifest's pin, then among the records whose predicates hold: place of the plugin in `prefer`,
// real kernels before references, least cost, higher rank, id.
#pragma once
#include <tenon/abi/kernels.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/plugin/registries.hpp"

namespace tenon {

struct KernelPolicy {
  // Plugin names or globs of record ids, best first; references beat real kernels only when named here.
  std::vector<std::string> prefer;
  std::map<std::string, std::string> pin;  // node name -> record id; both may have `*`
  std::vector<std::string> deny;           // record ids, `*` allowed
  std::string device = "cpu";
  bool prefer_reference = false;  // oracles first: folding, verification
};

/// Place of the first wish in policy.prefer that names the kernel's plugin or matches its id; prefer.size()
/// when none does.
size_t preference_of(const KernelPolicy& policy, const KernelEntry& kernel);

/// The kernel id that policy.pin wants for the node; null: none.
const std::string* pin_of(const KernelPolicy& policy, std::string_view node_name);

struct Candidate {
  const KernelEntry* kernel = nullptr;
  std::string refusal;  // empty: it takes the node. "input 1 dtype: float16, takes float32, float64"
  double cost_ns = 0;
  bool preferred = false;  // pinned, or its plugin is in `prefer`
};

struct Selection {
  std::vector<Candidate> candidates;  // best first, then those refused
  bool found() const { return !candidates.empty() && candidates.front().refusal.empty(); }
  const KernelEntry* kernel() const { return found() ? candidates.front().kernel : nullptr; }
};

// Why this record can never run such a node; "" when nothing speaks against it. With `concrete` false, dims
// that are not numbers and ranks not known pass, and neither match() nor cost() is called.
std::string refusal_of(const KernelEntry& kernel, const OpRegistry& ops, const tn_plan_view& view,
                       const KernelPolicy& policy, bool concrete);

Selection select_kernel(const Registries& registries, const KernelPolicy& policy, const tn_plan_view& view,
                        bool concrete);

// "  * cpu.conv/1  cost 12.1 us" / "    reference.conv/1  refused: ...", one line a candidate.
std::string selection_text(const Selection& selection);

}  // namespace tenon
