#pragma once
// The entries of IDtrace's trace files (docs/formats/idtrace.md): tagged, without a header,
// little-endian. The tags that occur depend on what the program was instrumented for.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace citcat {

/// The three kinds of `.trc` files.
enum class IdtraceKind : std::uint8_t {
  branch,     ///< -b: where blocks begin, and the control instructions that end them
  cache,      ///< -c, -l: lines of code and data references
  execution,  ///< -e: everything, by way of the blocks in `.blk`
};
/// "branch", "cache", "execution".
std::string_view idtrace_kind_name(IdtraceKind kind);

/// The upper half of an entry's first byte, which of references has their size in the lower half.
enum class IdtraceTag : std::uint8_t {
  read_write = 0x00,    ///< execution: one operand, read and then written
  read = 0x10,          ///< cache, execution
  write = 0x20,         ///< cache, execution
  repeat_read = 0x30,   ///< cache with -r, execution: by an iteration of REP
  repeat_write = 0x40,  ///< the same
  repeat_end = 0x50,    ///< the same; no address (0)
  line = 0x60,          ///< cache: beginning of a line of code
  block_start = 0x70,   ///< branch: linear address
  block = 0x80,         ///< execution: position of a record in `.blk`
  target = 0x90,        ///< execution: of a jump or call, or where its pointer is
  control = 0xa0,       ///< branch: an instruction with an opcode of one byte
  control_two = 0xb0,   ///< branch: of two
};
/// "read", "repeat end" ...
std::string_view idtrace_tag_name(IdtraceTag tag);
/// Whether files of that kind have such entries.
bool idtrace_has(IdtraceKind kind, IdtraceTag tag);
/// Whether the tag is of a reference, with a size.
constexpr bool is_idtrace_reference(IdtraceTag tag) { return tag <= IdtraceTag::repeat_write; }
constexpr bool is_idtrace_repeat(IdtraceTag tag) {
  return tag == IdtraceTag::repeat_read || tag == IdtraceTag::repeat_write;
}

inline constexpr std::uint8_t kIdtraceMaxSizeCode = 5;
/// Bytes of a reference with size code 1 to 5: 1, 2, 4, 8, 10.
std::uint8_t idtrace_size_bytes(std::uint8_t code);
/// The code of so many bytes; of those that have none the next larger, of more than ten that of
/// ten.
std::uint8_t idtrace_size_code(unsigned bytes);

inline constexpr std::size_t kIdtraceMaxEntryBytes = 7;

struct IdtraceEntry {
  IdtraceTag tag = IdtraceTag::read;
  std::uint8_t size_code = 0;            ///< 1 to 5 of references, else 0
  std::array<std::uint8_t, 2> opcode{};  ///< of control instructions
  /// Linear address; of a control instruction that of its last byte, of a block a position in
  /// `.blk`.
  std::uint32_t value = 0;

  /// Bytes in the file.
  std::size_t bytes() const {
    return tag == IdtraceTag::control ? 6 : tag == IdtraceTag::control_two ? 7 : 5;
  }
  bool operator==(const IdtraceEntry&) const = default;
};

/// The kind of file that may begin with this byte. A cache trace without lines of code begins with
/// a reference, which an execution trace cannot.
std::optional<IdtraceKind> idtrace_kind_of(std::uint8_t first_byte);

}  // namespace citcat
