#pragma once
// Vectors of 64 bytes, where the processor has them: a handful of loops over bus records is written
// a second time for these. What they give is the same, and tests compare the two.

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

/// As long as it lives, programs do as if the processor had no wide vectors. For tests; what was
/// made before it may use them still.
class NoSimdVectors {
 public:
  NoSimdVectors();
  ~NoSimdVectors();
  NoSimdVectors(const NoSimdVectors&) = delete;
  NoSimdVectors& operator=(const NoSimdVectors&) = delete;
};

}  // namespace citcat
