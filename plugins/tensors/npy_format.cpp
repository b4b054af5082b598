// .npy: one tensor.
#include "formats.hpp"
#include "npy.hpp"

namespace tenon::tensors {
namespace {

tn_status read(void* instance, const tn_host*, tn_str path, ExpectedDtype expected, Sink sink, void* context,
               const tn_diag* diag) {
  return sdk::guarded(diag, [&]() -> tn_status {
    const sdk::Services& services = *static_cast<const sdk::Services*>(instance);
    const Mapped file(services.files, path);
    const std::string where = sdk::text(path);
    const NpyHeader h = read_npy_header(file.data(), file.size(), where);
    const uint64_t found = file.size() - h.data_offset;
    if (found < h.data_bytes)
      throw sdk::Failure(
          TN_ERR_INVALID,
          sdk::format("found %llu bytes of elements, expected %llu for %s %s; the file is cut short",
                      static_cast<unsigned long long>(found), static_cast<unsigned long long>(h.data_bytes),
                      h.descr.c_str(), sdk::dims_text(h.dims).c_str()),
          where);
    const LoadedTensor t = LoadedTensor::decode(
        h, file.data() + h.data_offset, expected_of(expected, context, "", 0), where, Budget(services));
    const tn_named_tensor named{{nullptr, 0}, -1, t.get(), TN_KIND_NONE, 0};
    return sink(context, &named);
  });
}

tn_status write(void* instance, const tn_host*, tn_str path, const tn_named_tensor* tensors, uint32_t count,
                const tn_diag* diag) {
  return sdk::guarded(diag, [&] {
    if (count != 1 || tensors[0].index != -1)
      throw sdk::Failure(
          TN_ERR_INVALID,
          "an .npy file holds exactly one tensor; write an .npz for several, or for a sequence",
          sdk::text(path));
    const NpyImage image = make_npy(tensors[0].tensor, sdk::text(path));
    Written out(static_cast<const sdk::Services*>(instance)->files, path);
    out.write(image.header.data(), image.header.size());
    out.write(image.data ? image.data : image.converted.data(), image.bytes);
    out.keep();
  });
}

}  // namespace

const tn_tensor_file_record* npy_record() noexcept {
  static constexpr tn_str suffixes[] = {{".npy", 4}};
  static const tn_tensor_file_record record{sizeof(tn_tensor_file_record),
                                            0,
                                            {"npy", 3},
                                            sdk::str("numpy's file of one array"),
                                            suffixes,
                                            1,
                                            0,
                                            read,
                                            write};
  return &record;
}

}  // namespace tenon::tensors
