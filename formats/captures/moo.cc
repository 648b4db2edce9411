#include "formats/captures/moo.h"

#include <algorithm>
#include <cctype>

#include "formats/io/byte_reader.h"
#include "formats/io/input.h"

namespace citcat {
namespace {

// The largest published file is far below this when decompressed.
constexpr std::uint64_t kMaxFileBytes = std::uint64_t{1} << 28;
constexpr std::size_t kCycleBytes = 15;
constexpr std::size_t kRamEntryBytes = 5;

struct CpuName {
  const char* id;  // of the file header, four characters
  MooCpu cpu;
};
constexpr CpuName kCpus[] = {{"8088", MooCpu::i8088}, {"8086", MooCpu::i8086},
                             {"V20 ", MooCpu::v20},   {"V30 ", MooCpu::v30},
                             {"186 ", MooCpu::i186},  {"C286", MooCpu::i286},
                             {"386E", MooCpu::i386ex}};

// Registers in the order of the mask's bits.
constexpr std::string_view kRegisters16[] = {"ax", "bx", "cx", "dx", "cs", "ss", "ds",
                                             "es", "sp", "bp", "si", "di", "ip", "flags"};
constexpr std::string_view kRegisters32[] = {"cr0", "cr3", "eax", "ebx",    "ecx", "edx", "esi",
                                             "edi", "ebp", "esp", "cs",     "ds",  "es",  "fs",
                                             "gs",  "ss",  "eip", "eflags", "dr6", "dr7"};

std::string text_of(std::span<const std::uint8_t> bytes) {
  return std::string(bytes.begin(), bytes.end());
}

struct Chunk {
  std::string id;
  ByteReader payload;
};

Chunk next_chunk(ByteReader& in) {
  const std::uint64_t begin = in.offset();
  std::string id = text_of(in.bytes(4, "chunk id"));
  const bool printable =
      std::all_of(id.begin(), id.end(), [](unsigned char c) { return std::isprint(c) != 0; });
  if (!printable) in.fail_at(begin, "expected the id of a chunk, found unprintable bytes");
  const std::uint32_t length = in.u32("chunk length");
  const std::uint64_t base = in.offset();
  return {id, ByteReader(in.bytes(length, "chunk '" + id + "'"), in.name(), base)};
}

/// A count of items of `item_bytes` each, which must all be there.
std::size_t bounded_count(ByteReader& in, std::size_t item_bytes, std::string_view field) {
  const std::uint64_t begin = in.offset();
  const std::uint32_t count = in.u32(field);
  if (count > in.remaining() / item_bytes)
    in.fail_at(begin, "expected at most " + std::to_string(in.remaining() / item_bytes) + " " +
                          std::string(field) + ", found " + std::to_string(count));
  return count;
}

std::vector<MooRegister> read_registers16(ByteReader& in) {
  std::vector<MooRegister> registers;
  const std::uint16_t mask = in.u16("register mask");
  for (std::size_t bit = 0; bit < std::size(kRegisters16); ++bit)
    if (((mask >> bit) & 1) != 0)
      registers.push_back({kRegisters16[bit], in.u16(kRegisters16[bit])});
  return registers;
}

std::vector<MooRegister> read_registers32(ByteReader& in) {
  std::vector<MooRegister> registers;
  const std::uint32_t mask = in.u32("register mask");
  for (std::size_t bit = 0; bit < std::size(kRegisters32); ++bit)
    if (((mask >> bit) & 1) != 0)
      registers.push_back({kRegisters32[bit], in.u32(kRegisters32[bit])});
  return registers;
}

MooState read_state(ByteReader in) {
  MooState state;
  while (!in.at_end()) {
    Chunk chunk = next_chunk(in);
    ByteReader& payload = chunk.payload;
    if (chunk.id == "REGS") {
      state.registers = read_registers16(payload);
    } else if (chunk.id == "RG32") {
      state.registers = read_registers32(payload);
    } else if (chunk.id == "RMSK") {
      state.masks = read_registers16(payload);
    } else if (chunk.id == "RM32") {
      state.masks = read_registers32(payload);
    } else if (chunk.id == "RAM ") {
      const std::size_t count = bounded_count(payload, kRamEntryBytes, "RAM entries");
      state.ram.reserve(count);
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t address = payload.u32("RAM address");
        state.ram.push_back({address, payload.u8("RAM value")});
      }
    } else if (chunk.id == "QUEU") {
      const auto bytes = payload.bytes(bounded_count(payload, 1, "queue bytes"), "queue");
      state.queue.emplace(bytes.begin(), bytes.end());
    }
  }
  return state;
}

std::vector<MooCycle> read_cycles(ByteReader in) {
  std::vector<MooCycle> cycles(bounded_count(in, kCycleBytes, "cycles"));
  for (MooCycle& cycle : cycles) {
    cycle.pins = in.u8("pins");
    cycle.address = in.u32("address");
    cycle.segment_status = in.u8("segment status");
    cycle.memory_status = in.u8("memory status");
    cycle.io_status = in.u8("I/O status");
    cycle.pins1 = in.u8("pins 1");
    cycle.data = in.u16("data");
    cycle.bus_status = in.u8("bus status");
    cycle.t_state = in.u8("T state");
    cycle.queue_op = in.u8("queue operation");
    cycle.queue_byte = in.u8("queue byte");
  }
  return cycles;
}

std::string hex_text(std::span<const std::uint8_t> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

MooTest read_test(ByteReader in) {
  MooTest test;
  test.index = in.u32("test index");
  while (!in.at_end()) {
    Chunk chunk = next_chunk(in);
    ByteReader& payload = chunk.payload;
    if (chunk.id == "NAME") {
      test.name = text_of(payload.bytes(bounded_count(payload, 1, "name bytes"), "name"));
    } else if (chunk.id == "BYTS") {
      const auto bytes = payload.bytes(bounded_count(payload, 1, "instruction bytes"), "bytes");
      test.bytes.assign(bytes.begin(), bytes.end());
    } else if (chunk.id == "INIT") {
      test.initial = read_state(payload);
    } else if (chunk.id == "FINA") {
      test.final = read_state(payload);
    } else if (chunk.id == "CYCL") {
      test.cycles = read_cycles(payload);
    } else if (chunk.id == "EXCP") {
      const std::uint8_t number = payload.u8("exception number");
      test.exception = MooException{number, payload.u32("address of FLAGS")};
    } else if (chunk.id == "HASH") {
      test.hash = hex_text(payload.bytes(payload.remaining(), "hash"));
    }
  }
  return test;
}

void read_header(ByteReader in, MooFile& file, std::uint32_t& test_count) {
  file.version_major = in.u8("major version");
  file.version_minor = in.u8("minor version");
  if (file.version_major != 1)
    in.fail_at(in.offset() - 2,
               "expected MOO version 1, found " + std::to_string(file.version_major));
  in.skip(2, "reserved");
  test_count = in.u32("test count");
  const std::uint64_t where = in.offset();
  const std::string id = text_of(in.bytes(4, "processor"));
  const auto it = std::find_if(std::begin(kCpus), std::end(kCpus),
                               [&](const CpuName& cpu) { return id == cpu.id; });
  if (it == std::end(kCpus)) in.fail_at(where, "expected a known processor, found '" + id + "'");
  file.cpu = it->cpu;
}

void read_meta(ByteReader in, MooFile& file) {
  in.skip(3, "version and processor");
  file.opcode = in.u32("opcode");
  file.mnemonic = text_of(in.bytes(8, "mnemonic"));
  const auto end = file.mnemonic.find_last_not_of(std::string_view(" \0", 2));
  file.mnemonic.resize(end == std::string::npos ? 0 : end + 1);
}

}  // namespace

std::optional<std::uint32_t> MooState::find(std::string_view name) const {
  for (const MooRegister& entry : registers)
    if (entry.name == name) return entry.value;
  return std::nullopt;
}

MooFile parse_moo(std::span<const std::uint8_t> bytes, const std::string& name) {
  MooFile file;
  file.name = name;
  std::uint32_t test_count = 0;
  bool header = false;
  ByteReader in(bytes, name);
  while (!in.at_end() || !header) {
    const std::uint64_t begin = in.offset();
    const Chunk chunk = next_chunk(in);
    if (!header && chunk.id != "MOO ")
      in.fail_at(begin, "expected a MOO file, found '" + chunk.id + "' at its beginning");
    if (chunk.id == "MOO ") {
      read_header(chunk.payload, file, test_count);
      header = true;
    } else if (chunk.id == "META") {
      read_meta(chunk.payload, file);
    } else if (chunk.id == "RMSK") {
      ByteReader payload = chunk.payload;
      file.masks = read_registers16(payload);
    } else if (chunk.id == "RM32") {
      ByteReader payload = chunk.payload;
      file.masks = read_registers32(payload);
    } else if (chunk.id == "TEST") {
      file.tests.push_back(read_test(chunk.payload));
    }
  }
  if (file.tests.size() != test_count)
    in.fail("expected " + std::to_string(test_count) + " tests, found " +
            std::to_string(file.tests.size()) + ": the file is cut or damaged");
  return file;
}

MooFile read_moo(const std::string& path) {
  const auto bytes = read_whole_file(path, kMaxFileBytes);
  return parse_moo(bytes, path);
}

}  // namespace citcat
