#pragma once
// This process's own memory: the engine's library does not tell where it keeps things.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace citcat {

/// Addresses of this process that are mapped as one, in bytes; `end` is the first behind.
struct HostMapping {
  std::uintptr_t begin = 0, end = 0;
  bool operator==(const HostMapping&) const = default;
};

/// The mappings whose permissions begin with `permissions`, as in "rw" or "rwx"; by address
/// (/proc/self/maps, proc(5)).
std::vector<HostMapping> host_mappings(std::string_view permissions);

/// The same with those that touch as one. What was allocated at once may lie in two: the heap of a
/// forked process grows in a mapping of its own behind the one that it has from its parent.
std::vector<HostMapping> joined(const std::vector<HostMapping>& mappings);

/// Whether the `size` bytes at `at` lie in `mappings`, in one or in several that touch.
bool lies_in(const std::vector<HostMapping>& mappings, std::uintptr_t at, std::size_t size);

/// The bytes at `at`, which can be read. Word by word and unseen by the sanitizers: they may be
/// another's object, or nobody's.
template <class T>
__attribute__((no_sanitize("address", "thread"))) T copy_of(std::uintptr_t at) {
  std::array<std::uint64_t, sizeof(T) / sizeof(std::uint64_t)> words{};
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] = reinterpret_cast<const volatile std::uint64_t*>(at)[i];
  }
  return std::bit_cast<T>(words);
}

}  // namespace citcat
