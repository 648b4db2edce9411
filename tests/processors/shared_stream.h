#pragma once
// What an independent simulator says that several processors did, all of them in one order.

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "formats/io/input.h"

namespace citcat::test {

/// A record of golden.bin.zst (data/machine64/FORMAT64.md, data/smp/FORMATSMP.md).
struct SharedStreamRecord {
  std::uint8_t kind, a, b, c;
  std::uint32_t d;
  std::uint64_t linear, instruction;
  std::uint8_t x[40];

  std::size_t processor() const { return kind >> 4; }
  bool is_instruction() const { return (kind & 15) == 1; }
  bool is_access() const { return (kind & 15) == 2; }
};
static_assert(sizeof(SharedStreamRecord) == 64);

inline std::vector<SharedStreamRecord> read_shared_stream(const std::string& path) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;
  const auto bytes = read_whole_file(path, kMostBytes);
  std::vector<SharedStreamRecord> all(bytes.size() / sizeof(SharedStreamRecord));
  std::memcpy(all.data(), bytes.data(), all.size() * sizeof(SharedStreamRecord));
  return all;
}

}  // namespace citcat::test
