#pragma once
// How a fuzz target is written: CITCAT_FUZZ_TARGET(reader) { ... return 0; } with `data` and `size`
// as its input. The fuzz preset makes a program with libFuzzer of each target; every other build
// puts all targets into the one program fuzz_replay, which runs their corpora.

#include <cstddef>
#include <cstdint>

namespace citcat::fuzz {

/// Runs one target on one input. Returns 0; a fault aborts or throws.
using FuzzTarget = int (*)(const std::uint8_t* data, std::size_t size);

/// Adds `target` to those that fuzz_replay finds under the name `reader`.
struct RegisteredTarget {
  RegisteredTarget(const char* reader, FuzzTarget target);
};

}  // namespace citcat::fuzz

#ifdef CITCAT_LIBFUZZER
#define CITCAT_FUZZ_TARGET(reader) \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
#else
#define CITCAT_FUZZ_TARGET(reader)                                                         \
  static int fuzz_##reader(const std::uint8_t* data, std::size_t size);                    \
  static const citcat::fuzz::RegisteredTarget registered_##reader(#reader, fuzz_##reader); \
  static int fuzz_##reader(const std::uint8_t* data, std::size_t size)
#endif
