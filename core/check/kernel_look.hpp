// The plugin's kernel records over nodes they take, and what they compute against what others do.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "core/check/device_trial.hpp"
#include "core/check/kernel_cases.hpp"

namespace tenon::check {

inline bool is_for_host(const KernelEntry& kernel) {
  return kernel.record->device.size == 0 || view(kernel.record->device) == "cpu";
}

// A kernel over one case that it takes.
struct KernelLook {
  const KernelEntry& kernel;
  NodeCase& node;
  const Registries& registries;

  // Null: it does not plan it.
  std::unique_ptr<KernelTrial> plan(KernelTrial::Setup setup = {}) const;
  bool is_random() const;
};

// Every own record over the cases it takes; the subject is begun. Records that run regions, or that want what
// is no tensor, are run by sessions only.
enum class KernelPlace { host, device };
void each_kernel(Checker& checker, KernelPlace place, size_t cases,
                 const std::function<void(const KernelLook&)>& look, bool tell_unreached = false);

// A run's results against those of another kernel, or of the operator's decomposition.
void compare_with_others(Checker& checker, const KernelLook& look, const KernelRun& run,
                         const char* precision);
// Two runs of what should be the same.
void compare_runs(Checker& checker, const KernelRun& a, const KernelRun& b, std::string_view what, bool bits);

// The plugin's devices, opened when a kernel for one is planned: a plan gets the open device.
class KernelDevices {
 public:
  explicit KernelDevices(Checker& checker) : checker_(checker) {}
  // Puts it into the setup. False: there is none on this machine, or it does not open, as other checks tell.
  bool give(const KernelEntry& kernel, KernelTrial::Setup& setup);

 private:
  Checker& checker_;
  std::map<std::string, std::unique_ptr<DeviceTrial>> open_;
};

// The record of a kernel's device; null: no plugin of the engine's has it, or none is on this machine.
const DeviceEntry* device_of(const Registries& registries, const KernelEntry& kernel);

}  // namespace tenon::check
