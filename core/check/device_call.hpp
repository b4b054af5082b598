// A planned kernel of a device, on its device: operands side by side in one buffer there, whose every byte is
// watched.
#pragma once
#include <vector>

#include "core/check/device_trial.hpp"
#include "core/check/kernel_trial.hpp"

namespace tenon::check {

class DeviceCall {
 public:
  // `alias`: number of the record's alias to run in place, or -1.
  DeviceCall(const KernelTrial& trial, DeviceTrial& device, int alias = -1);
  ~DeviceCall();  // the plan and the host's memory are in use until the stream has finished
  DeviceCall(const DeviceCall&) = delete;
  DeviceCall& operator=(const DeviceCall&) = delete;

  // The operands there, and the kernel behind them; done when the device comes to it. Throws DeviceFault.
  void enqueue(tn_stream* stream);
  KernelRun collect();

 private:
  struct Place {
    uint64_t offset = 0, bytes = 0;
    bool is_written = false;
  };
  Place reserve(uint64_t bytes, bool is_written);

  const KernelTrial& trial_;
  DeviceTrial& device_;
  std::vector<Place> inputs_, outputs_;
  Place workspace_;
  uint64_t total_ = 0;
  tn_device_buffer arena_{};
  Bytes* before_ = nullptr;  // all of it, as it is uploaded
  tn_stream* stream_ = nullptr;
  int status_ = 0;
};

}  // namespace tenon::check
