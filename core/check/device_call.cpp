#include "core/check/device_call.hpp"

#include <algorithm>
#include <cstring>

#include "core/base/text.hpp"

namespace tenon::check {

namespace {

constexpr uint64_t gap = 128;  // between operands
constexpr uint8_t untouched = 0xb7;

}  // namespace

DeviceCall::Place DeviceCall::reserve(uint64_t bytes, bool is_written) {
  const Place place{device_.aligned(total_ + gap), bytes, is_written};
  total_ = place.offset + bytes;
  return place;
}

DeviceCall::DeviceCall(const KernelTrial& trial, DeviceTrial& device, int alias_number)
    : trial_(trial), device_(device) {
  const tn_alias* const alias = alias_number < 0 ? nullptr : &trial.record().aliases[alias_number];
  for (size_t i = 0; i < trial.inputs().size(); ++i)
    inputs_.push_back(trial.inputs()[i].present == 0 ? Place{}
                                                     : reserve(trial.node().inputs[i]->bytes(), false));
  for (size_t i = 0; i < trial.outputs().size(); ++i) {
    if (alias != nullptr && alias->output == i) {
      inputs_[alias->input].is_written = true;
      outputs_.push_back(inputs_[alias->input]);
    } else {
      outputs_.push_back(trial.outputs()[i].present == 0 ? Place{} : reserve(trial.output_bytes()[i], true));
    }
  }
  workspace_ = reserve(trial.planned().workspace_bytes, true);
  total_ += gap;
  before_ = &device.host(total_, untouched);
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (inputs_[i].bytes != 0)
      std::memcpy(before_->data() + inputs_[i].offset, trial.node().inputs[i]->data(), inputs_[i].bytes);
  arena_ = device.allocate(total_);
}

DeviceCall::~DeviceCall() {
  if (stream_ != nullptr) device_.record().finish(stream_);
  device_.release(arena_);
}

void DeviceCall::enqueue(tn_stream* stream) {
  stream_ = stream;
  device_.upload(stream, arena_, *before_);
  const auto buffers_of = [&](const std::vector<Place>& places, std::span<const tn_operand> operands) {
    std::vector<tn_device_buffer> buffers;
    for (size_t i = 0; i < places.size(); ++i)
      buffers.push_back(operands[i].present == 0 ? tn_device_buffer{} : at(arena_, places[i].offset));
    return buffers;
  };
  // As the header says: valid during the call.
  const std::vector<tn_device_buffer> inputs = buffers_of(inputs_, trial_.inputs()),
                                      outputs = buffers_of(outputs_, trial_.outputs());
  const tn_device_args args{trial_.planned().state,
                            inputs.data(),
                            outputs.data(),
                            stream,
                            at(arena_, workspace_.offset),
                            static_cast<uint32_t>(inputs.size()),
                            static_cast<uint32_t>(outputs.size())};
  status_ = trial_.planned().enqueue(&args);
}

KernelRun DeviceCall::collect() {
  KernelRun run;
  run.status = status_;
  if (run.status == 0) run.status = device_.record().finish(stream_);
  if (run.status != 0) {
    run.failure = device_.explained();
    return run;
  }
  const Bytes after = device_.get(stream_, arena_, total_);
  // What nobody may write is as it was.
  std::vector<bool> may_write(total_, false);
  for (const std::vector<Place>& places : {inputs_, outputs_, std::vector<Place>{workspace_}})
    for (const Place& place : places)
      if (place.is_written)
        std::fill_n(may_write.begin() + static_cast<ptrdiff_t>(place.offset), place.bytes, true);
  for (uint64_t i = 0; i < total_; ++i) {
    if (may_write[i] || after[i] == (*before_)[i]) continue;
    std::string where = "outside of its operands";
    for (size_t k = 0; k < inputs_.size(); ++k)
      if (i >= inputs_[k].offset && i < inputs_[k].offset + inputs_[k].bytes)
        where = fmt::format("in input {}", k);
    for (size_t k = 0; k < outputs_.size(); ++k)
      if (const uint64_t end = outputs_[k].offset + outputs_[k].bytes; i >= end && i < end + gap)
        where = fmt::format("{} bytes after the end of result {}", i - end + 1, k);
    run.damages.push_back("it writes " + where);
    break;
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    run.results.emplace_back();
    const tn_operand& operand = trial_.outputs()[i];
    if (operand.present == 0) continue;
    const std::vector<uint8_t> bytes(after.begin() + static_cast<ptrdiff_t>(outputs_[i].offset),
                                     after.begin() + static_cast<ptrdiff_t>(outputs_[i].offset) +
                                         static_cast<ptrdiff_t>(outputs_[i].bytes));
    run.results.back() = copy_tensor({operand.type.dtype, operand.type.rank, operand.type.dims,
                                      const_cast<uint8_t*>(bytes.data()), bytes.size()},
                                     "check");
  }
  return run;
}

}  // namespace tenon::check
