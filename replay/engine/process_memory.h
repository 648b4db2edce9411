#pragma once
// This process's own memory: the engine's library does not say where it keeps its data.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace citcat {

/// Addresses of this process that are mapped as one, in bytes; `end` is the first after.
struct HostMapping {
  std::uintptr_t begin = 0, end = 0;
  bool operator==(const HostMapping&) const = default;
};

/// The mappings whose permissions begin with `permissions`, as in "rw" or "rwx"; by address
/// (/proc/self/maps, proc(5)).
std::vector<HostMapping> host_mappings(std::string_view permissions);

/// Whether the `size` bytes at `at` lie in `mappings`, in one or in several that touch. What was
/// allocated at once may lie in two: the heap of a forked process grows in a mapping of its own
/// after the one that it has from its parent.
bool lies_in(const std::vector<HostMapping>& mappings, std::uintptr_t at, std::size_t size);

/// Copies the bytes at `at`; false where they cannot be read, because another thread has unmapped
/// them since they were in a mapping, say.
bool copy_memory(std::uintptr_t at, std::span<char> to);

/// The bytes at `at`; nothing where they cannot be read.
template <class T>
std::optional<T> copy_of(std::uintptr_t at) {
  std::array<char, sizeof(T)> bytes{};
  if (!copy_memory(at, bytes)) return std::nullopt;
  return std::bit_cast<T>(bytes);
}

}  // namespace citcat
