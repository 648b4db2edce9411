#pragma once
// MOO: single-step tests of real processors, with every clock of their bus. Chunks of
// [4-character id][u32 length][payload], little-endian; see docs/formats/moo.md. The layout is that
// of "MOO format v1.1" (dbalsom/moo, doc/moo_format_v1.md).

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace citcat {

/// The processors of MOO files.
enum class MooCpu : std::uint8_t { i8088, i8086, v20, v30, i186, i286, i386ex };

/// A register and its value; `name` as set_register() knows it ("ax", "eip", "cr0", ...).
struct MooRegister {
  std::string_view name;
  std::uint32_t value = 0;
};

struct MooByte {
  std::uint32_t address = 0;
  std::uint8_t value = 0;
};

struct MooState {
  std::vector<MooRegister> registers;  ///< final states hold only those that changed (RG32) or all
  std::vector<MooByte> ram;            ///< final states hold only bytes that changed
  /// Prefetched bytes, where the file has them: of the 8086 and its relatives.
  std::optional<std::vector<std::uint8_t>> queue;
  std::vector<MooRegister> masks;  ///< AND masks of registers with undefined bits

  std::optional<std::uint32_t> find(std::string_view name) const;
};

/// One clock of the bus. Encodings differ between processors: see docs/formats/moo.md.
struct MooCycle {
  std::uint8_t pins = 0;  ///< bit 0 ALE; from the 80286 on 1 BHE# level, 2 READY, 3 LOCK# level
  std::uint32_t address = 0;
  std::uint8_t segment_status = 0;
  std::uint8_t memory_status = 0;  ///< bit 2 read, bit 0 write
  std::uint8_t io_status = 0;      ///< the same
  std::uint8_t pins1 = 0;          ///< bit 0 BHE# level, of the 8086 and its relatives
  std::uint16_t data = 0;
  std::uint8_t bus_status = 0;
  std::uint8_t t_state = 0;   ///< 0 Ti, 1 T1 (Ts), 2 T2 (Tc), 3 T3, 4 T4, 5 Tw
  std::uint8_t queue_op = 0;  ///< 0 none, 1 first byte, 2 emptied, 3 subsequent byte
  std::uint8_t queue_byte = 0;
};

struct MooException {
  std::uint8_t number = 0;
  std::uint32_t flags_address = 0;  ///< physical address of the pushed FLAGS
};

struct MooTest {
  std::uint32_t index = 0;
  std::string name;  ///< disassembly
  std::vector<std::uint8_t> bytes;
  MooState initial, final;
  std::vector<MooCycle> cycles;
  std::optional<MooException> exception;
  std::string hash;  ///< SHA-1 in hexadecimal, "" when the test has none
};

struct MooFile {
  std::string name;  ///< of the file, for messages
  std::uint8_t version_major = 0, version_minor = 0;
  MooCpu cpu = MooCpu::i8088;
  std::string mnemonic;            ///< from META, "" when there is none
  std::uint32_t opcode = 0;        ///< from META
  std::vector<MooRegister> masks;  ///< for every test of the file
  std::vector<MooTest> tests;
};

/// Reads a whole file, compressed or not. FormatError with the offset in the decompressed file.
MooFile read_moo(const std::string& path);
/// The same from memory.
MooFile parse_moo(std::span<const std::uint8_t> bytes, const std::string& name);

}  // namespace citcat
