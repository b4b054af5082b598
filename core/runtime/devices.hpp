// The devices of a session besides the host: opened, their memory and streams kept between runs.
#pragma once
#include <tenon/abi/device.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/text.hpp"
#include "core/plugin/registries.hpp"
#include "core/runtime/packed_constants.hpp"
#include "core/runtime/placement.hpp"

namespace tenon {

// Where nodes may and must run. Nodes are meant by name or operator, `*` allowed.
struct DevicePolicy {
  bool all = false;              // every device that loaded plugins bring
  std::vector<std::string> use;  // "toy": all of that kind; "toy:1": one
  std::map<std::string, std::string> pin;
  std::map<std::string, std::vector<std::string>> deny;  // device -> nodes

  // What `pin` says of a node; the exact name first, then the operator, then patterns, longer ones first.
  // Null: nothing, or "auto".
  const std::string* pin_of(std::string_view node, std::string_view op) const;
  // The pattern of `deny` that keeps the node off the device; null: none does.
  const std::string* denied(std::string_view device, std::string_view kind, std::string_view node,
                            std::string_view op) const;
};

class OpenDevice;

// Memory of a device that somebody owns.
class DeviceMemory {
 public:
  DeviceMemory(std::shared_ptr<OpenDevice> device, uint64_t bytes, const std::string& what);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  const std::shared_ptr<OpenDevice> device;
  const uint64_t bytes;
  uint64_t handle = 0;
  void* address = nullptr;  // on the host, of devices that are visible there
};

// The streams of one run.
class DeviceLane {
 public:
  explicit DeviceLane(std::shared_ptr<OpenDevice> device);
  ~DeviceLane();
  DeviceLane(const DeviceLane&) = delete;
  DeviceLane& operator=(const DeviceLane&) = delete;
  tn_status finish() noexcept;
  const std::shared_ptr<OpenDevice> device;
  tn_stream* compute = nullptr;
  tn_stream* copies = nullptr;  // the same where the device has no copy stream
};

class OpenDevice : public std::enable_shared_from_this<OpenDevice> {
 public:
  // Throws Error when the plugin cannot open it.
  OpenDevice(const DeviceEntry& entry, uint32_t ordinal, uint32_t space, std::string name);
  ~OpenDevice();
  OpenDevice(const OpenDevice&) = delete;
  OpenDevice& operator=(const OpenDevice&) = delete;

  const tn_device_record& record() const { return *entry_.record; }
  std::string_view kind() const { return view(entry_.record->kind); }
  const std::string& name() const { return name_; }
  tn_device* handle() const { return handle_; }
  uint32_t space() const { return space_; }
  uint32_t ordinal() const { return ordinal_; }
  const DeviceEntry& entry() const { return entry_; }
  const tn_device_properties& properties() const { return properties_; }
  bool has(uint32_t flag) const { return (properties_.flags & flag) != 0; }
  bool reads(const OpenDevice& other) const;  // copies from its memory without the host
  PlacementProblem::Device transfers() const;

  // Notes a lost device; the text of a failure as the plugin tells it.
  std::string failure(tn_status status);
  bool lost() const { return lost_.load(std::memory_order_relaxed); }

  std::unique_ptr<DeviceLane> acquire_lane();
  void release_lane(std::unique_ptr<DeviceLane> lane);
  std::unique_ptr<DeviceMemory> acquire_arena(uint64_t bytes);
  void release_arena(std::unique_ptr<DeviceMemory> arena);
  // The constant in the device's memory, uploaded by whoever asks first. Throws Error.
  std::shared_ptr<const DeviceMemory> constant(const ContentIdentity& identity, const tn_tensor& tensor,
                                               const std::string& what);
  // Streams and arenas that wait for the next run hold the device; this lets go of them.
  void drop_idle();

 private:
  const DeviceEntry entry_;
  const uint32_t ordinal_, space_;
  const std::string name_;
  tn_device* handle_ = nullptr;
  tn_device_properties properties_{};
  std::atomic<bool> lost_{false};
  std::mutex mutex_;
  std::vector<std::unique_ptr<DeviceLane>> lanes_;
  std::vector<std::unique_ptr<DeviceMemory>> arenas_;
  std::map<std::pair<uint64_t, uint64_t>, std::weak_ptr<const DeviceMemory>> constants_;
};

class DeviceSet {
 public:
  // Opens what the policy asks for. Throws Error (exit code 2) for names that no plugin brings.
  DeviceSet(const Registries& registries, const DevicePolicy& policy);
  ~DeviceSet();
  DeviceSet(const DeviceSet&) = delete;
  DeviceSet& operator=(const DeviceSet&) = delete;
  // Lost ones are opened anew. Throws Error when that fails.
  std::vector<std::shared_ptr<OpenDevice>> current();
  bool empty() const { return devices_.empty(); }

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<OpenDevice>> devices_;
};

}  // namespace tenon
