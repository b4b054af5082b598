// Devices: what a plugin derives from, and what its kernels get.
//
//   class Npu : public sdk::Device { ... };                      // memory, streams, events
//   plugin.device(sdk::device_record<Npu>("npu", "the Acme NPU"));
//   plugin.kernel("com.acme.npu.relu/1", "Relu").device("npu").plan<plan_relu>();
//
// Functions throw Failure (DeviceLost when the device is gone); the thunks here make a status of it and keep
// the text for the host.
#pragma once
#include <memory>
#include <mutex>
#include <string>

#include "kernels.hpp"
#include "tenon/abi/device.h"

namespace tenon::sdk {

class DeviceLost : public Failure {
 public:
  explicit DeviceLost(std::string message) : Failure(TN_DEVICE_LOST, std::move(message)) {}
};

/// A mark in a stream. synchronize blocks until the stream has passed it.
class Event {
 public:
  virtual ~Event() = default;
  virtual void synchronize() = 0;

 private:
  template <class T>
  friend const tn_device_record* device_record(const char*, const char*);
  class Device* device_ = nullptr;
};

/// A queue that works in order. All but finish return before the work is done.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual void upload(const tn_device_buffer& to, const void* from, uint64_t bytes) = 0;
  virtual void download(void* to, const tn_device_buffer& from, uint64_t bytes) = 0;
  virtual void copy(const tn_device_buffer& to, const tn_device_buffer& from, uint64_t bytes) = 0;
  virtual void record(Event& event) = 0;
  virtual void wait(Event& event) = 0;
  virtual void finish() = 0;

 private:
  template <class T>
  friend const tn_device_record* device_record(const char*, const char*);
  template <void (*F)(const class DeviceArgs&)>
  friend int enqueue_kernel(const tn_device_args*) noexcept;
  class Device* device_ = nullptr;
};

/// One open device; T(ordinal, space) of device_record makes it.
class Device {
 public:
  virtual ~Device() = default;
  /// Flags, description, alignment and the speed of transfers; `out` is zeroed with alignment 1 before.
  virtual void properties(tn_device_properties& out) = 0;
  virtual uint64_t allocate(uint64_t bytes) = 0;
  virtual void release(uint64_t handle) noexcept = 0;
  virtual void* map(uint64_t) { throw Failure(TN_ERR_UNSUPPORTED, "its memory has no host addresses"); }
  virtual std::unique_ptr<Stream> stream(bool copies_only) = 0;
  virtual std::unique_ptr<Event> event() = 0;

  /// Runs f; what it throws becomes a status, and the text of the last failure.
  template <class F>
  tn_status guard(F&& f) noexcept {
    DiagBuffer said;
    const tn_status status = guarded(said.raw(), std::forward<F>(f));
    if (status != TN_OK) {
      const std::lock_guard<std::mutex> lock(failure_mutex_);
      failure_ = said.text();
    }
    return status;
  }
  std::string last_failure() const {
    const std::lock_guard<std::mutex> lock(failure_mutex_);
    return failure_;
  }

 private:
  mutable std::mutex failure_mutex_;
  std::string failure_;
};

/// The operands of one kernel that is enqueued.
class DeviceArgs {
 public:
  explicit DeviceArgs(const tn_device_args* a) noexcept : a_(a) {}
  const tn_device_buffer& input(uint32_t i) const noexcept { return a_->inputs[i]; }
  const tn_device_buffer& output(uint32_t i = 0) const noexcept { return a_->outputs[i]; }
  bool has_input(uint32_t i) const noexcept { return i < a_->input_count && a_->inputs[i].present != 0; }
  uint32_t input_count() const noexcept { return a_->input_count; }
  const tn_device_buffer& workspace() const noexcept { return a_->workspace; }
  template <class State>
  const State& state() const noexcept {
    return *static_cast<const State*>(a_->state);
  }
  /// The stream as the plugin made it.
  template <class T>
  T& stream() const noexcept {
    return static_cast<T&>(*reinterpret_cast<Stream*>(a_->stream));
  }

 private:
  const tn_device_args* a_;
};

/// A tn_enqueue_fn from F(args), which may throw.
template <void (*F)(const DeviceArgs&)>
int enqueue_kernel(const tn_device_args* args) noexcept {
  return reinterpret_cast<Stream*>(args->stream)->device_->guard([&] { F(DeviceArgs(args)); });
}

/// In a kernel's plan: F runs it on its device. `state` must live until its work is done, which the plan sees
/// to.
template <void (*F)(const DeviceArgs&), class State>
void set_enqueue(Planned& planned, std::unique_ptr<State> state, uint64_t workspace_bytes = 0) {
  planned.set(nullptr, std::move(state), 1, workspace_bytes);
  planned.raw().enqueue = enqueue_kernel<F>;
}

/// The open device that a node is planned for; NULL on the host.
template <class T>
T* device_of(const PlanView& view) noexcept {
  if (!TN_HAS(&view.raw(), device_handle) || view.raw().device_handle == nullptr) return nullptr;
  return static_cast<T*>(reinterpret_cast<Device*>(view.raw().device_handle));
}

/// The record of devices of type T: T::count() says how many there are, T(ordinal, space) opens one.
template <class T>
const tn_device_record* device_record(const char* kind, const char* summary) {
  static constexpr auto self = [](tn_device* d) noexcept { return reinterpret_cast<Device*>(d); };
  static constexpr auto of = [](tn_stream* s) noexcept { return reinterpret_cast<Stream*>(s); };
  static constexpr auto mark = [](tn_event* e) noexcept { return reinterpret_cast<Event*>(e); };
  static tn_device_record r = [] {
    tn_device_record t{};
    t.size = sizeof t;
    t.count = [](void*) noexcept -> uint32_t {
      uint32_t count = 0;
      guarded(nullptr, [&] { count = T::count(); });
      return count;
    };
    t.open = [](void*, uint32_t ordinal, uint32_t space, const tn_diag* diag, tn_device** out) noexcept {
      return guarded(
          diag, [&] { *out = reinterpret_cast<tn_device*>(static_cast<Device*>(new T(ordinal, space))); });
    };
    t.close = [](tn_device* d) noexcept { delete self(d); };
    t.properties = [](tn_device* d, tn_device_properties* out) noexcept {
      return self(d)->guard([&] {
        *out = tn_device_properties{};
        out->size = sizeof *out;
        out->alignment = 1;
        self(d)->properties(*out);
      });
    };
    t.allocate = [](tn_device* d, uint64_t bytes, uint64_t* handle) noexcept {
      return self(d)->guard([&] { *handle = self(d)->allocate(bytes); });
    };
    t.release = [](tn_device* d, uint64_t handle) noexcept { self(d)->release(handle); };
    t.map = [](tn_device* d, uint64_t handle) noexcept -> void* {
      void* address = nullptr;
      self(d)->guard([&] { address = self(d)->map(handle); });
      return address;
    };
    t.create_stream = [](tn_device* d, uint32_t use, tn_stream** out) noexcept {
      return self(d)->guard([&] {
        std::unique_ptr<Stream> made = self(d)->stream(use == TN_STREAM_COPY);
        made->device_ = self(d);
        *out = reinterpret_cast<tn_stream*>(made.release());
      });
    };
    t.destroy_stream = [](tn_device*, tn_stream* s) noexcept { delete of(s); };
    t.create_event = [](tn_device* d, tn_event** out) noexcept {
      return self(d)->guard([&] {
        std::unique_ptr<Event> made = self(d)->event();
        made->device_ = self(d);
        *out = reinterpret_cast<tn_event*>(made.release());
      });
    };
    t.destroy_event = [](tn_device*, tn_event* e) noexcept { delete mark(e); };
    t.upload = [](tn_stream* s, const tn_device_buffer* to, const void* from, uint64_t bytes) noexcept {
      return of(s)->device_->guard([&] { of(s)->upload(*to, from, bytes); });
    };
    t.download = [](tn_stream* s, void* to, const tn_device_buffer* from, uint64_t bytes) noexcept {
      return of(s)->device_->guard([&] { of(s)->download(to, *from, bytes); });
    };
    t.copy = [](tn_stream* s, const tn_device_buffer* to, const tn_device_buffer* from,
                uint64_t bytes) noexcept {
      return of(s)->device_->guard([&] { of(s)->copy(*to, *from, bytes); });
    };
    t.record = [](tn_stream* s, tn_event* e) noexcept {
      return of(s)->device_->guard([&] { of(s)->record(*mark(e)); });
    };
    t.wait = [](tn_stream* s, tn_event* e) noexcept {
      return of(s)->device_->guard([&] { of(s)->wait(*mark(e)); });
    };
    t.synchronize = [](tn_event* e) noexcept {
      return mark(e)->device_->guard([&] { mark(e)->synchronize(); });
    };
    t.finish = [](tn_stream* s) noexcept { return of(s)->device_->guard([&] { of(s)->finish(); }); };
    t.explain = [](tn_device* d, const tn_diag* diag) noexcept {
      guarded(nullptr, [&] { Diag(diag).error("", self(d)->last_failure()); });
    };
    return t;
  }();
  r.kind = str(kind);
  r.summary = str(summary);
  return &r;
}

}  // namespace tenon::sdk
