// One kernel record over one node with numbers for all shapes: matched, planned and run outside of any
// session, in memory whose every byte is watched.
#pragma once
#include <tenon/abi/kernels.h>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/tensor.hpp"
#include "core/check/values.hpp"
#include "core/graph/graph.hpp"
#include "core/plugin/registries.hpp"
#include "core/runtime/value_handle.hpp"

namespace tenon::check {

// Memory with guard words before and after, at an address that is a multiple of `alignment` and of nothing
// larger.
class GuardedBuffer {
 public:
  GuardedBuffer(uint64_t bytes, uint64_t alignment);
  void* data() { return data_; }
  uint64_t bytes() const { return bytes_; }
  // Where a guard word was written: "4 bytes after its end".
  std::optional<std::string> damage() const;

 private:
  static constexpr uint64_t guard = 128;
  std::vector<uint8_t> memory_;
  uint8_t* data_ = nullptr;
  uint64_t bytes_ = 0;
};

// A node and the values of its operands.
struct NodeCase {
  std::string name;
  std::unique_ptr<Graph> graph;  // of the node alone, every dim of its inputs a number
  tn_node node = TN_NONE;
  std::vector<std::shared_ptr<Tensor>> inputs;  // by operand; empty where omitted
  std::vector<bool> constant;
};

struct RunSetup {
  uint64_t alignment = 64;  // of inputs and results; 0: of their elements
  int alias = -1;           // number of the record's alias to run in place
  bool tiles_backwards = false;
  bool fail_allocation = false;  // what the kernel asks memory for in the run
  uint32_t threads_at_once = 1;  // whole runs over one plan
};
struct KernelRun {
  int status = 0;
  std::string failure;               // what it said
  std::vector<AnyRef> results;       // by result; empty where not wanted, or not given
  std::vector<std::string> damages;  // guard words, inputs written, results of another size
  bool threads_agree = true;
  bool memory_was_refused = false;  // as fail_allocation asks; a kernel may need none
};

class KernelTrial {
 public:
  struct Setup {
    uint32_t threads = 1;
    std::string precision = "faithful";
    bool fail_packing = false;
    uint32_t view_size = sizeof(tn_plan_view);
    tn_device* device = nullptr;  // of kernels for one; needed from plan on
  };
  KernelTrial(const Registries& registries, const KernelEntry& kernel, NodeCase& node, Setup setup);
  ~KernelTrial();
  KernelTrial(const KernelTrial&) = delete;
  KernelTrial& operator=(const KernelTrial&) = delete;

  // Why the record does not take the node; empty: it does. `reason_is_missing`: it declined without one.
  std::string refusal();
  // TN_OK, and then run() may be called. `said`: what it told.
  tn_status plan(std::string& said);
  KernelRun run(const RunSetup& setup);
  bool is_planned() const { return planned_.fn != nullptr; }
  // A kernel of a device besides the host: run() cannot call it, a DeviceCall can.
  bool is_enqueued() const { return planned_.enqueue != nullptr; }
  const tn_planned& planned() const { return planned_; }
  std::span<const tn_operand> inputs() const { return inputs_; }
  std::span<const tn_operand> outputs() const { return outputs_; }
  const std::vector<uint64_t>& output_bytes() const { return output_bytes_; }
  const NodeCase& node() const { return node_; }
  const tn_kernel_record& record() const { return *kernel_.record; }
  bool has_known_results() const;  // shapes and types of all
  // Whether such an alias can be tried here: both there, tensors of equal bytes.
  bool fits(const tn_alias& alias) const;

 private:
  struct Packed;
  struct Call;
  static tn_status pack(tn_plan_ctx* context, uint32_t input, tn_str key, uint64_t bytes,
                        tn_status (*fill)(void*, const tn_tensor*, void*), void* fill_context,
                        const void** blob);
  int run_once(const RunSetup& setup, KernelRun& out);

  const Registries& registries_;
  const KernelEntry& kernel_;
  NodeCase& node_;
  Setup setup_;
  tn_node_info info_{};
  tn_plan_view view_{};
  std::vector<tn_operand> inputs_, outputs_;
  std::vector<uint64_t> output_bytes_;
  std::vector<std::unique_ptr<GuardedBuffer>> packed_;
  tn_planned planned_{};
};

}  // namespace tenon::check
