// oneDNN enters here only: one engine a process, one stream a thread, never a thread team of its own.
#pragma once
#include <dnnl.hpp>

#include <string>

#include "tenon/sdk/kernels.hpp"

namespace tenon::cpu {

/// Caps oneDNN's instruction set at what the plan allows. Works before its first use in the process only;
/// later calls change nothing.
void allow_isa(uint64_t cpu_features);
const dnnl::engine& engine();
dnnl::stream& stream();  // of the calling thread

/// oneDNN was built on OpenMP and reads the calling thread's team size when a primitive is made and when it
/// runs. While this lives the team is one thread; the caller's setting comes back after.
class SingleThread {
 public:
  SingleThread() noexcept;
  ~SingleThread();
  SingleThread(const SingleThread&) = delete;
  SingleThread& operator=(const SingleThread&) = delete;

 private:
  int before_;
};

/// A key that is equal for equal memory descriptors.
std::string layout_key(const char* what, const dnnl::memory::desc& md);
/// Copies src (described by from) into dst (described by to).
void reorder(const dnnl::memory::desc& from, const void* src, const dnnl::memory::desc& to, void* dst);
/// Row-major single precision C[m,n] = A[m,k] * B[k,n] + beta * C; trans_a: A is stored [k,m]. Runs in the
/// calling thread.
void sgemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
           int64_t lda, const float* b, int64_t ldb, float beta, float* c, int64_t ldc) noexcept;

/// A primitive prepared for many threads at once: its scratchpad is the caller's.
template <class Primitive>
struct Prepared {
  Primitive primitive;
  size_t scratchpad_bytes = 0;
};

}  // namespace tenon::cpu
