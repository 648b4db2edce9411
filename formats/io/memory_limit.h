#pragma once
// How much memory the contents of files may take: a file of some kilobytes can claim to hold
// gigabytes.

#include <cstdint>
#include <string>
#include <string_view>

namespace citcat {

/// How much decoded data a process may hold by default.
inline constexpr std::uint64_t kDefaultMemoryLimit = std::uint64_t{2} << 30;

/// In bytes, for the whole process. Set it before threads are started.
void set_memory_limit(std::uint64_t bytes);
std::uint64_t memory_limit();

/// Throws FormatError when `bytes`, which a reader of the file `name` is about to hold, are more
/// than memory_limit(). `offset` and `what`: where in the file it says so, and of what.
void require_memory(std::uint64_t bytes, const std::string& name, std::uint64_t offset,
                    std::string_view what);

/// Throws Error: `what` takes more than memory_limit(), and `where` that was found.
[[noreturn]] void refuse_memory(std::string_view what, std::string_view where);

}  // namespace citcat
