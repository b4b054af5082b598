// Level 6: memory planners and tensor files.
#include <algorithm>

#include "core/base/files.hpp"
#include "core/base/text.hpp"
#include "core/check/checker.hpp"
#include "core/check/damage.hpp"
#include "core/check/file_trials.hpp"
#include "core/check/levels.hpp"
#include "core/check/values.hpp"
#include "core/pipeline/pipeline.hpp"

namespace tenon::check {

namespace {

// Buffers as they occur, and as they should not.
std::vector<tn_buffer> draw_buffers(Random& random, uint32_t count, int kind) {
  std::vector<tn_buffer> buffers;
  const auto steps = static_cast<int64_t>(std::max(1u, count));
  for (uint32_t i = 0; i < count; ++i) {
    const auto first = static_cast<uint32_t>(random.between(0, steps - 1));
    const auto last = static_cast<uint32_t>(
        kind == 1 ? steps - 1 : std::min<int64_t>(steps, first + random.between(0, kind == 2 ? 1 : 8)));
    const uint64_t bytes = kind == 3 ? uint64_t{1} << random.below(40)
                                     : static_cast<uint64_t>(random.between(kind == 4 ? 0 : 1, 100000));
    buffers.push_back({bytes, uint64_t{1} << random.below(kind == 5 ? 13 : 8), first, std::max(first, last)});
  }
  return buffers;
}

uint64_t live_bound(const std::vector<tn_buffer>& buffers) {
  uint64_t bound = 0;
  for (const tn_buffer& at : buffers) {
    uint64_t live = 0;
    for (const tn_buffer& other : buffers)
      if (other.first_step <= at.first_step && at.first_step <= other.last_step) live += other.bytes;
    bound = std::max(bound, live);
  }
  return bound;
}

struct Placement {
  std::vector<uint64_t> offsets;
  std::vector<uint32_t> times;
  bool out_of_range = false;
};

Placement plan(const PlannerEntry& planner, const std::vector<tn_buffer>& buffers, tn_status& status,
               Diagnostics& said) {
  Placement placement;
  placement.offsets.resize(buffers.size());
  placement.times.resize(buffers.size());
  status = planner.record->plan(
      planner.instance, buffers.data(), static_cast<uint32_t>(buffers.size()), live_bound(buffers),
      [](void* context, uint32_t i, uint64_t offset) {
        auto& out = *static_cast<Placement*>(context);
        if (i >= out.offsets.size()) {
          out.out_of_range = true;
          return;
        }
        out.offsets[i] = offset;
        ++out.times[i];
      },
      &placement, said.abi());
  return placement;
}

std::string buffer_text(const std::vector<tn_buffer>& buffers, const Placement& placement, size_t i) {
  return fmt::format("buffer {} ({} bytes, steps {} to {}, at {})", i, buffers[i].bytes,
                     buffers[i].first_step, buffers[i].last_step, placement.offsets[i]);
}

void judge_placement(Checker& checker, const std::vector<tn_buffer>& buffers, const Placement& placement) {
  if (placement.out_of_range) checker.finding("it places a buffer that does not exist");
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (placement.times[i] != 1)
      checker.finding(fmt::format("buffer {} is placed {} times", i, placement.times[i]));
    if (placement.offsets[i] % buffers[i].alignment != 0)
      checker.finding(
          fmt::format("{} is not aligned to {}", buffer_text(buffers, placement, i), buffers[i].alignment));
    if (placement.offsets[i] > UINT64_MAX - buffers[i].bytes)
      checker.finding(buffer_text(buffers, placement, i) + " ends beyond 64 bits");
    for (size_t k = 0; k < i; ++k) {
      const tn_buffer &a = buffers[k], &b = buffers[i];
      const bool together = a.first_step <= b.last_step && b.first_step <= a.last_step;
      const bool overlap = placement.offsets[k] < placement.offsets[i] + b.bytes &&
                           placement.offsets[i] < placement.offsets[k] + a.bytes;
      if (!together || !overlap || a.bytes == 0 || b.bytes == 0) continue;
      checker.finding(buffer_text(buffers, placement, k) + " overlaps " + buffer_text(buffers, placement, i));
      return;
    }
  }
}

constexpr tn_dtype stored_dtypes[] = {TN_FLOAT32, TN_FLOAT64, TN_FLOAT16, TN_INT8,    TN_INT16,
                                      TN_INT32,   TN_INT64,   TN_UINT8,   TN_BOOL,    TN_UINT16,
                                      TN_UINT32,  TN_UINT64,  TN_STRING,  TN_BFLOAT16};

struct Read {
  std::vector<Tensor> tensors;
  std::vector<std::string> names;
  std::vector<int64_t> index;
  tn_dtype expected = TN_DTYPE_NONE;
};

tn_status read(const TensorFileEntry& format, const tn_host* host, const std::string& path, Read& out,
               Diagnostics& said) {
  return format.record->read(
      format.instance, host, to_abi(path),
      [](void* context, tn_str, uint32_t) { return static_cast<Read*>(context)->expected; },
      [](void* context, const tn_named_tensor* tensor) -> tn_status {
        auto& read_so_far = *static_cast<Read*>(context);
        read_so_far.names.push_back(string(tensor->name));
        read_so_far.index.push_back(tensor->index);
        if (tensor->index != -2) read_so_far.tensors.push_back(Tensor::copy_of(tensor->tensor));
        return TN_OK;
      },
      &out, said.abi());
}

template <class Look>
void each_format(Checker& checker, Look&& look) {
  Engine& engine = checker.engine();
  for (const TensorFileEntry& format : engine.registries().tensor_files())
    if (checker.is_own(format.plugin)) look(engine, format, string(format.record->id));
}

}  // namespace

std::string file_name(const TensorFileEntry& format, const std::string& stem) {
  return stem + (format.record->suffix_count == 0 ? std::string(".bin") : string(format.record->suffixes[0]));
}

void check_planners(Checker& checker) {
  for (const PlannerEntry& planner : checker.records().planners()) {
    for (uint32_t i = 0; i < 45 * checker.request().effort; ++i) {
      Random random = checker.random(std::to_string(i));
      const auto count = static_cast<uint32_t>(i < 4 ? i : random.between(1, i % 10 == 0 ? 150 : 30));
      const std::vector<tn_buffer> buffers = draw_buffers(random, count, static_cast<int>(i % 6));
      if (!checker.begin(fmt::format("planner {}: {} buffers, draw {}", view(planner.record->id), count, i)))
        continue;
      Diagnostics said;
      tn_status status = TN_OK;
      const Placement placement = plan(planner, buffers, status, said);
      if (status != TN_OK) {
        if (said.all().empty()) checker.finding(fmt::format("status {} without a reason", status));
        continue;  // the host takes the next planner
      }
      judge_placement(checker, buffers, placement);
      if (plan(planner, buffers, status, said).offsets != placement.offsets)
        checker.finding("the same buffers get other places the second time");
    }
  }
}

void check_tensor_files_round_trip(Checker& checker) {
  each_format(checker, [&](Engine& engine, const TensorFileEntry& format, const std::string& id) {
    if (format.record->read == nullptr || format.record->write == nullptr) return;
    for (const tn_dtype dtype : stored_dtypes)
      for (const std::vector<int64_t>& dims : {std::vector<int64_t>{}, std::vector<int64_t>{3},
                                               std::vector<int64_t>{2, 3, 4}, std::vector<int64_t>{0, 2}}) {
        Random random = checker.random(dtype_name(dtype));
        Tensor tensor(dtype, dims);
        fill(tensor, random, Fill::wild);
        if (!checker.begin(fmt::format("format {}: {}", id, type_of(tensor.view())))) continue;
        const std::string path = (checker.scratch() / file_name(format, "tensor")).string();
        std::vector<tn_named_tensor> named = {{to_abi("first"), -1, tensor.view(), TN_KIND_TENSOR, 0}};
        if (format.record->holds_many != 0)
          named.push_back({to_abi("a/second one"), -1, tensor.view(), TN_KIND_TENSOR, 0});
        Diagnostics said;
        tn_status status =
            format.record->write(format.instance, engine.host().abi(), to_abi(path), named.data(),
                                 static_cast<uint32_t>(named.size()), said.abi());
        if (status != TN_OK) {
          if (said.all().empty()) checker.finding(fmt::format("write: status {} without a reason", status));
          continue;  // a format need not have every type
        }
        Read got;
        got.expected = dtype;
        status = read(format, engine.host().abi(), path, got, said);
        if (status != TN_OK) {
          checker.finding("what it wrote it cannot read: " + said.first_error());
          continue;
        }
        if (got.tensors.size() != named.size()) {
          checker.finding(
              fmt::format("{} tensors were written, {} are read", named.size(), got.tensors.size()));
          continue;
        }
        for (size_t i = 0; i < named.size(); ++i) {
          if (auto text = bit_difference(tensor.view(), got.tensors[i].view())) checker.finding(*text);
          if (format.record->holds_many != 0 && got.names[i] != view(named[i].name))
            checker.finding(fmt::format("the name {} is read as {}", quoted(view(named[i].name)),
                                        quoted(std::string_view(got.names[i]))));
        }
      }
  });
}

void read_and_judge(Checker& checker, const TensorFileEntry& format, const std::string& name,
                    const std::string& bytes) {
  const std::filesystem::path path = checker.scratch() / name;
  write_file_atomically(path, bytes);
  checker.reproducer(path);
  Read got;
  Diagnostics said;
  const tn_status status = read(format, checker.engine().host().abi(), path.string(), got, said);
  if (status != TN_OK && said.all().empty())
    checker.finding(fmt::format("read answers status {} and does not say why", status));
  if (status == TN_ERR_INTERNAL)
    checker.finding("read answers that it has a bug (TN_ERR_INTERNAL): " + said.first_error());
}

std::vector<std::string> tensor_file_samples(Checker& checker, const TensorFileEntry& format) {
  std::vector<std::string> files;
  if (format.record->read == nullptr) return files;
  std::error_code error;
  if (!checker.request().samples.empty())
    for (const auto& entry : std::filesystem::directory_iterator(checker.request().samples, error))
      for (uint32_t i = 0; i < format.record->suffix_count; ++i)
        if (entry.path().string().ends_with(view(format.record->suffixes[i])))
          files.push_back(read_text_file(entry.path()));
  std::sort(files.begin(), files.end());
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{3, 4}, std::vector<int64_t>{5}})
    for (const tn_dtype dtype : {TN_FLOAT32, TN_INT64, TN_STRING}) {
      if (format.record->write == nullptr) break;
      Random random = checker.random(dtype_name(dtype));
      Tensor tensor(dtype, dims);
      fill(tensor, random, Fill::tame);
      const tn_named_tensor named[] = {{to_abi("x"), -1, tensor.view(), TN_KIND_TENSOR, 0},
                                       {to_abi("y"), -1, tensor.view(), TN_KIND_TENSOR, 0}};
      const std::string path = (checker.scratch() / file_name(format, "sample")).string();
      Diagnostics ignored;
      if (format.record->write(format.instance, checker.engine().host().abi(), to_abi(path), named,
                               format.record->holds_many != 0 ? 2 : 1, ignored.abi()) == TN_OK)
        files.push_back(read_text_file(path));
    }
  return files;
}

void check_tensor_files_damaged(Checker& checker) {
  each_format(checker, [&](Engine&, const TensorFileEntry& format, const std::string& id) {
    size_t number = 0;
    for (const std::string& bytes : tensor_file_samples(checker, format)) {
      ++number;
      for (const size_t size : cuts(bytes.size(), 40 * checker.request().effort))
        if (checker.begin(
                fmt::format("format {}: file {}, the first {} of {} bytes", id, number, size, bytes.size())))
          read_and_judge(checker, format, file_name(format, fmt::format("cut-{}-{}", number, size)),
                         bytes.substr(0, size));
      for (uint32_t i = 0; i < 80 * checker.request().effort; ++i) {
        Random random = checker.random(fmt::format("{} {}", number, i));
        if (checker.begin(fmt::format("format {}: file {}, damaged, {}", id, number, i)))
          read_and_judge(checker, format, file_name(format, fmt::format("damaged-{}-{}", number, i)),
                         flipped(bytes, random));
      }
    }
  });
}

}  // namespace tenon::check
