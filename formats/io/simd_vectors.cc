#include "formats/io/simd_vectors.h"

#include <atomic>

namespace citcat {
namespace {

std::atomic<int> refused{0};

bool supported() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
         __builtin_cpu_supports("popcnt");
#else
  return false;
#endif
}

}  // namespace

bool has_simd_vectors() {
  static const bool kSupported = supported();
  return kSupported && refused == 0;
}

NoSimdVectors::NoSimdVectors() { ++refused; }
NoSimdVectors::~NoSimdVectors() { --refused; }

}  // namespace citcat
