#include "support/kernel.hpp"

#include <cctype>

namespace tenon::reference {

namespace {
struct Bytes16 {
  uint64_t a, b;
};
template <class T>
void copy_strided(const Walk<1>& walk, const T* from, T* to, int64_t begin, int64_t end) noexcept {
  const int64_t stride = walk.inner_stride(0);
  walk.rows(begin, end, [&](int64_t at, const int64_t(&offset)[1], int64_t n) {
    const T* s = from + offset[0];
    T* t = to + at;
    if (stride == 1)
      std::memcpy(t, s, static_cast<size_t>(n) * sizeof(T));
    else if (stride == 0)
      std::fill(t, t + n, *s);
    else
      for (int64_t i = 0; i < n; ++i) t[i] = s[i * stride];
  });
}
}  // namespace

void strided_copy(const Walk<1>& walk, int64_t bytes, const void* from, int64_t offset, void* to,
                  int64_t begin, int64_t end) noexcept {
  switch (bytes) {
    case 1:
      copy_strided(walk, static_cast<const uint8_t*>(from) + offset, static_cast<uint8_t*>(to), begin, end);
      break;
    case 2:
      copy_strided(walk, static_cast<const uint16_t*>(from) + offset, static_cast<uint16_t*>(to), begin, end);
      break;
    case 4:
      copy_strided(walk, static_cast<const uint32_t*>(from) + offset, static_cast<uint32_t*>(to), begin, end);
      break;
    case 8:
      copy_strided(walk, static_cast<const uint64_t*>(from) + offset, static_cast<uint64_t*>(to), begin, end);
      break;
    default:
      copy_strided(walk, static_cast<const Bytes16*>(from) + offset, static_cast<Bytes16*>(to), begin, end);
      break;
  }
}

KernelBuilder& reference_kernel(Plugin& p, const char* op, const char* variant) {
  std::string snake;
  const std::string_view whole(op);
  const size_t colon = whole.rfind(':');
  const std::string_view name = colon == std::string_view::npos ? whole : whole.substr(colon + 1);
  for (size_t i = 0; i < name.size(); ++i) {
    const auto upper = [&](size_t k) {
      return k < name.size() && std::isupper(static_cast<unsigned char>(name[k]));
    };
    // A new word begins at a capital after a small letter, or at the last capital before one: "RMSNorm" ->
    // rms_norm.
    if (i > 0 && upper(i) &&
        (!upper(i - 1) ||
         (i + 1 < name.size() && !upper(i + 1) && std::isalpha(static_cast<unsigned char>(name[i + 1])))))
      snake += '_';
    snake += static_cast<char>(std::tolower(static_cast<unsigned char>(name[i])));
  }
  return p.kernel("tenon.reference." + snake + variant + "/1", op)
      .flags(TN_KERNEL_REFERENCE | TN_KERNEL_DETERMINISTIC);
}

}  // namespace tenon::reference
