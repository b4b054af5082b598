#include "core/runtime/devices.hpp"

#include <algorithm>

namespace tenon {
namespace {

[[noreturn]] void fail(OpenDevice& device, tn_status status, const std::string& doing) {
  throw Error(exit_job_failed, "device " + device.name(), doing + " failed: " + device.failure(status));
}

std::string device_name(const DeviceEntry& entry, uint32_t ordinal, uint32_t count) {
  const std::string kind = string(entry.record->kind);
  return count == 1 ? kind : fmt::format("{}:{}", kind, ordinal);
}

bool names(std::string_view wish, std::string_view name, std::string_view kind) {
  return wish == name || wish == kind;
}

}  // namespace

const std::string* DevicePolicy::pin_of(std::string_view node, std::string_view op) const {
  const auto said = [](const std::string& device) { return device == "auto" ? nullptr : &device; };
  for (const std::string_view name : {node, op}) {
    const auto exact = pin.find(std::string(name));
    if (exact != pin.end()) return said(exact->second);
  }
  const std::string* best = nullptr;
  size_t best_size = 0;
  for (const auto& [pattern, device] : pin) {
    if ((best != nullptr && pattern.size() <= best_size) ||
        (!glob_match(pattern, node) && !glob_match(pattern, op)))
      continue;
    best = &device;
    best_size = pattern.size();
  }
  return best == nullptr ? nullptr : said(*best);
}

const std::string* DevicePolicy::denied(std::string_view device, std::string_view kind, std::string_view node,
                                        std::string_view op) const {
  for (const auto& [wish, patterns] : deny) {
    if (!names(wish, device, kind)) continue;
    for (const std::string& pattern : patterns) {
      if (glob_match(pattern, node) || glob_match(pattern, op)) return &pattern;
    }
  }
  return nullptr;
}

DeviceMemory::DeviceMemory(std::shared_ptr<OpenDevice> of, uint64_t size, const std::string& what)
    : device(std::move(of)), bytes(size) {
  const tn_status status = device->record().allocate(device->handle(), std::max<uint64_t>(bytes, 1), &handle);
  if (status != TN_OK) {
    throw Error(exit_job_failed, "device " + device->name(),
                fmt::format("{} needs {} of its memory, which it does not give: {}; keep nodes off it with "
                            "\"devices\": {{\"deny\": ...}}, run a smaller batch, or give --device cpu",
                            what, format_bytes(bytes), device->failure(status)));
  }
  if (device->has(TN_DEVICE_HOST_VISIBLE)) {
    address = device->record().map(device->handle(), handle);
    if (address == nullptr) {
      device->record().release(device->handle(), handle);
      throw Error(
          exit_job_failed, "device " + device->name(),
          "says that its memory is visible to the host, but gives no address; its plugin is at fault");
    }
  }
}

DeviceMemory::~DeviceMemory() { device->record().release(device->handle(), handle); }

DeviceLane::DeviceLane(std::shared_ptr<OpenDevice> of) : device(std::move(of)) {
  const tn_device_record& record = device->record();
  tn_status status = record.create_stream(device->handle(), TN_STREAM_COMPUTE, &compute);
  if (status != TN_OK) fail(*device, status, "making a stream");
  copies = compute;
  if (!device->has(TN_DEVICE_COPY_STREAM)) return;
  status = record.create_stream(device->handle(), TN_STREAM_COPY, &copies);
  if (status == TN_OK) return;
  record.destroy_stream(device->handle(), compute);
  fail(*device, status, "making a stream for copies");
}

DeviceLane::~DeviceLane() {
  const tn_device_record& record = device->record();
  if (copies != compute) record.destroy_stream(device->handle(), copies);
  record.destroy_stream(device->handle(), compute);
}

tn_status DeviceLane::finish() noexcept {
  const tn_status first = device->record().finish(compute);
  const tn_status second = copies == compute ? TN_OK : device->record().finish(copies);
  return first != TN_OK ? first : second;
}

OpenDevice::OpenDevice(const DeviceEntry& entry, uint32_t ordinal, uint32_t space, std::string name)
    : entry_(entry), ordinal_(ordinal), space_(space), name_(std::move(name)) {
  Diagnostics said;
  tn_status status = record().open(entry_.instance, ordinal_, space_, said.abi(), &handle_);
  if (status != TN_OK || handle_ == nullptr) {
    throw Error(exit_job_failed, "device " + name_,
                fmt::format("cannot be opened (status {}): {}; run without it: --device cpu", status,
                            said.empty() ? "its plugin did not say why" : said.all().front().text));
  }
  properties_.size = sizeof properties_;
  status = record().properties(handle_, &properties_);
  const uint64_t alignment = properties_.alignment;
  if (status == TN_OK && alignment != 0 && (alignment & (alignment - 1)) == 0) return;
  const std::string why = status != TN_OK ? failure(status) : "its alignment is no power of two";
  record().close(handle_);
  throw Error(exit_job_failed, "device " + name_, "tells no usable properties: " + why);
}

OpenDevice::~OpenDevice() { record().close(handle_); }

bool OpenDevice::reads(const OpenDevice& other) const {
  return entry_.record == other.entry_.record && has(TN_DEVICE_PEER_COPY);
}

PlacementProblem::Device OpenDevice::transfers() const {
  const auto cost = [](const tn_link& link) { return TransferCost{link.latency_ns, link.bytes_per_ns}; };
  return {cost(properties_.upload), cost(properties_.download), {}};
}

std::string OpenDevice::failure(tn_status status) {
  if (status == TN_DEVICE_LOST) lost_ = true;
  Diagnostics said;
  record().explain(handle_, said.abi());
  const std::string text = said.empty() ? std::string() : said.all().front().text;
  const std::string_view kind = status == TN_DEVICE_LOST  ? "the device is lost"
                                : status == TN_ERR_MEMORY ? "not enough memory"
                                                          : "";
  if (text.empty() && kind.empty()) return fmt::format("status {}, and its plugin did not say why", status);
  return fmt::format("{}{}{}", kind, kind.empty() || text.empty() ? "" : ": ", text);
}

std::unique_ptr<DeviceLane> OpenDevice::acquire_lane() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!lanes_.empty()) {
      std::unique_ptr<DeviceLane> lane = std::move(lanes_.back());
      lanes_.pop_back();
      return lane;
    }
    lanes_.reserve(lanes_.capacity() + 1);  // giving it back will not allocate
  }
  return std::make_unique<DeviceLane>(shared_from_this());
}

void OpenDevice::release_lane(std::unique_ptr<DeviceLane> lane) {
  if (lost()) return;  // nobody would come for it
  const std::lock_guard<std::mutex> lock(mutex_);
  lanes_.push_back(std::move(lane));
}

std::unique_ptr<DeviceMemory> OpenDevice::acquire_arena(uint64_t bytes) {
  std::unique_ptr<DeviceMemory> outgrown;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (size_t i = arenas_.size(); i-- > 0;) {
      if (arenas_[i]->bytes < bytes) continue;
      std::unique_ptr<DeviceMemory> found = std::move(arenas_[i]);
      arenas_.erase(arenas_.begin() + static_cast<ptrdiff_t>(i));
      return found;
    }
    if (!arenas_.empty()) {  // the larger one takes its place
      outgrown = std::move(arenas_.back());
      arenas_.pop_back();
    }
    arenas_.reserve(arenas_.size() + 8);
  }
  outgrown.reset();
  return std::make_unique<DeviceMemory>(shared_from_this(), bytes, "the arena of this run");
}

void OpenDevice::release_arena(std::unique_ptr<DeviceMemory> arena) {
  if (lost()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  arenas_.push_back(std::move(arena));
}

std::shared_ptr<const DeviceMemory> OpenDevice::constant(const ContentIdentity& identity,
                                                         const tn_tensor& tensor, const std::string& what) {
  const std::pair<uint64_t, uint64_t> key{identity.a, identity.b};
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (std::shared_ptr<const DeviceMemory> known = constants_[key].lock()) return known;
  }
  auto memory = std::make_shared<DeviceMemory>(shared_from_this(), tensor.bytes, what);
  std::unique_ptr<DeviceLane> lane = acquire_lane();
  const tn_device_buffer to{memory->handle, 0, space_, 1};
  const tn_status enqueued =
      tensor.bytes == 0 ? TN_OK : record().upload(lane->copies, &to, tensor.data, tensor.bytes);
  const tn_status done = lane->finish();
  if (enqueued != TN_OK || done != TN_OK)
    fail(*this, enqueued != TN_OK ? enqueued : done, "uploading " + what);
  release_lane(std::move(lane));
  const std::lock_guard<std::mutex> lock(mutex_);
  constants_[key] = memory;
  return memory;
}

void OpenDevice::drop_idle() {
  std::vector<std::unique_ptr<DeviceLane>> lanes;
  std::vector<std::unique_ptr<DeviceMemory>> arenas;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    lanes.swap(lanes_);
    arenas.swap(arenas_);
  }
}

DeviceSet::DeviceSet(const Registries& registries, const DevicePolicy& policy) {
  std::vector<std::string> known = {"cpu"};
  const auto wanted = [&](std::string_view name, std::string_view kind) {
    return policy.all || std::any_of(policy.use.begin(), policy.use.end(),
                                     [&](const std::string& wish) { return names(wish, name, kind); });
  };
  std::vector<std::pair<const DeviceEntry*, uint32_t>> chosen;
  std::vector<std::string> chosen_names;
  for (const DeviceEntry& entry : registries.devices()) {
    const uint32_t count = entry.record->count(entry.instance);
    known.push_back(string(entry.record->kind));
    for (uint32_t ordinal = 0; ordinal < count; ++ordinal) {
      std::string name = device_name(entry, ordinal, count);
      if (name != known.back()) known.push_back(name);
      if (!wanted(name, view(entry.record->kind))) continue;
      chosen.emplace_back(&entry, ordinal);
      chosen_names.push_back(std::move(name));
    }
  }
  Diagnostics found;
  const auto check = [&](const std::string& name, const std::string& where) {
    if (std::find(known.begin(), known.end(), name) != known.end()) return;
    found.error("", where,
                fmt::format("no loaded plugin brings a device '{}'{}; there {}: {}", name,
                            did_you_mean(name, known), known.size() == 1 ? "is" : "are", join(known, ", ")));
  };
  for (const std::string& name : policy.use) check(name, "devices.use");
  for (const auto& [node, name] : policy.pin) {
    if (name != "auto") check(name, "devices.pin of '" + node + "'");
  }
  for (const auto& [name, nodes] : policy.deny) check(name, "devices.deny");
  found.throw_if_errors(exit_bad_input);
  for (size_t i = 0; i < chosen.size(); ++i) {
    devices_.push_back(std::make_shared<OpenDevice>(*chosen[i].first, chosen[i].second,
                                                    static_cast<uint32_t>(i + 1), chosen_names[i]));
  }
}

DeviceSet::~DeviceSet() {
  for (const auto& device : devices_) device->drop_idle();
}

std::vector<std::shared_ptr<OpenDevice>> DeviceSet::current() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (std::shared_ptr<OpenDevice>& device : devices_) {
    if (!device->lost()) continue;
    auto fresh =
        std::make_shared<OpenDevice>(device->entry(), device->ordinal(), device->space(), device->name());
    device->drop_idle();
    device = std::move(fresh);
  }
  return devices_;
}

}  // namespace tenon
