#include "onednn.hpp"

#include <omp.h>

#include <mutex>

namespace tenon::cpu {

void allow_isa(uint64_t features) {
  static std::once_flag once;
  std::call_once(once, [&] {
    using dnnl::cpu_isa;
    cpu_isa cap = cpu_isa::all;
    if (!(features & TN_CPU_AVX2))
      cap = cpu_isa::sse41;
    else if (!(features & TN_CPU_AVX512))
      cap = (features & TN_CPU_AVX_VNNI) ? cpu_isa::avx2_vnni : cpu_isa::avx2;
    else if (!(features & TN_CPU_AVX512_VNNI))
      cap = cpu_isa::avx512_core;
    else if (!(features & TN_CPU_AMX_INT8))
      cap = (features & TN_CPU_AVX512_BF16) ? cpu_isa::avx512_core_bf16 : cpu_isa::avx512_core_vnni;
    if (cap != cpu_isa::all) dnnl::set_max_cpu_isa(cap);
  });
}

const dnnl::engine& engine() {
  static const auto* e =
      new dnnl::engine(dnnl::engine::kind::cpu, 0);  // lives as long as the mapped library: until exit
  return *e;
}

dnnl::stream& stream() {
  static thread_local dnnl::stream s(engine());
  return s;
}

SingleThread::SingleThread() noexcept : before_(omp_get_max_threads()) {
  if (before_ != 1) omp_set_num_threads(1);
}
SingleThread::~SingleThread() {
  if (before_ != 1) omp_set_num_threads(before_);
}

std::string layout_key(const char* what, const dnnl::memory::desc& md) {
  uint64_t h = 1469598103934665603ull;  // FNV-1a over the descriptor, which oneDNN zero-fills before use
  const auto* p = reinterpret_cast<const unsigned char*>(&md.data);
  for (size_t i = 0; i < sizeof md.data; ++i) h = (h ^ p[i]) * 1099511628211ull;
  return sdk::format("dnnl-%d.%d/%s/%016llx/%zu", DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR, what,
                     static_cast<unsigned long long>(h), md.get_size());
}

void reorder(const dnnl::memory::desc& from, const void* src, const dnnl::memory::desc& to, void* dst) {
  const SingleThread one;
  dnnl::memory a(from, engine(), const_cast<void*>(src)), b(to, engine(), dst);
  dnnl::reorder(a, b).execute(stream(), a, b);
  stream().wait();
}

void sgemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
           int64_t lda, const float* b, int64_t ldb, float beta, float* c, int64_t ldc) noexcept {
  const SingleThread one;
  dnnl_sgemm(trans_a ? 'T' : 'N', trans_b ? 'T' : 'N', m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

}  // namespace tenon::cpu
