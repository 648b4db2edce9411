#pragma once
// 64-byte vectors, where the processor has them: a handful of loops over bus records have a second,
// vectorised version. Both give the same results, and tests compare them.

#if defined(__x86_64__)
/// Marks functions for processors that has_simd_vectors() is true of.
#define CITCAT_WIDE                                                                \
  __attribute__((                                                                  \
      target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi,bmi2," \
             "lzcnt,popcnt")))
#endif

namespace citcat {

/// Whether processor and system have AVX-512 with its operations on bytes (F, BW, DQ, VL, VBMI and
/// VBMI2: Intel SDM vol. 1, 15.2), and none of NoSimdVectors is there.
bool has_simd_vectors();

/// While one exists, has_simd_vectors() is false. For tests; objects made before may still use
/// vectors.
class NoSimdVectors {
 public:
  NoSimdVectors();
  ~NoSimdVectors();
  NoSimdVectors(const NoSimdVectors&) = delete;
  NoSimdVectors& operator=(const NoSimdVectors&) = delete;
};

}  // namespace citcat
