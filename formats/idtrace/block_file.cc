#include "formats/idtrace/block_file.h"

#include <algorithm>

#include "formats/io/byte_reader.h"
#include "formats/io/byte_writer.h"
#include "formats/io/error.h"
#include "formats/io/hash.h"

namespace citcat {
namespace {

constexpr std::size_t kBlockHeader = 16, kBlockFileBytes = 6, kInstructionBytes = 4;
constexpr unsigned kMaxInstruction = 15;
constexpr int kMaxEntries = 2;

/// The next `size` bytes, all of them.
ByteReader take(InputStream& input, std::size_t size, std::vector<std::uint8_t>& buffer,
                const char* what) {
  buffer.resize(size);
  const std::uint64_t at = input.offset();
  const std::size_t found = input.read(buffer);
  if (found < size) {
    throw FormatError(input.name(), at,
                      std::string(what) + ": expected " + std::to_string(size) + " bytes, found " +
                          std::to_string(found) + " before the end");
  }
  return ByteReader(buffer, input.name(), at);
}

IdtraceInstruction read_instruction(ByteReader& in, const std::string& name, std::uint64_t at) {
  IdtraceInstruction i;
  i.id = static_cast<std::int16_t>(in.u16("id"));
  i.bytes = in.u8("size of an instruction");
  i.entries = static_cast<std::int8_t>(in.u8("entries"));
  if (i.bytes == 0 || i.bytes > kMaxInstruction) {
    throw FormatError(
        name, at + 2,
        "size of an instruction: expected 1 to 15 bytes, found " + std::to_string(i.bytes));
  }
  if (i.entries > kMaxEntries || i.entries < -kMaxEntries) {
    throw FormatError(
        name, at + 3,
        "entries of an instruction: expected -2 to 2, found " + std::to_string(i.entries));
  }
  return i;
}

}  // namespace

std::int16_t idtrace_instruction_id(std::uint8_t opcode, unsigned map, unsigned reg) {
  return static_cast<std::int16_t>(opcode | (map & 3U) << 8 | (reg & 7U) << 10);
}

std::uint32_t IdtraceBlock::code_bytes() const {
  std::uint32_t bytes = 0;
  for (const IdtraceInstruction& i : instructions) bytes += i.bytes;
  return bytes;
}

IdtraceBlocks IdtraceBlocks::load(const std::string& path) {
  return load(std::make_unique<InputStream>(path));
}

IdtraceBlocks IdtraceBlocks::load(std::unique_ptr<InputStream> input) {
  IdtraceBlocks file;
  file.name_ = input->name();
  std::vector<std::uint8_t> buffer;
  ByteReader header = take(*input, kBlockHeader, buffer, "header");
  const std::uint32_t count = header.u32("blocks");
  file.text_offset_ = header.u32("oldt_offset");
  file.magic_.original = header.u32("magic of the original");
  file.magic_.traced = header.u32("magic of the traced program");
  while (!input->at_end()) {
    const std::uint64_t at = input->offset();
    if (file.blocks_.size() == count) {
      throw FormatError(
          file.name_, at,
          "expected the end after " + std::to_string(count) + " blocks, found more bytes");
    }
    if (at > 0xffffffff) throw FormatError(file.name_, at, "expected at most 4 GiB, found more");
    ByteReader head = take(*input, kBlockFileBytes, buffer, "block");
    IdtraceBlock block;
    block.position = static_cast<std::uint32_t>(at);
    block.address = head.u32("address");
    const unsigned size = head.u8("instructions");
    if (size == 0) {
      throw FormatError(file.name_, at + 4, "instructions of a block: expected 1 to 255, found 0");
    }
    const std::uint64_t first = input->offset();
    ByteReader in = take(*input, kInstructionBytes * size, buffer, "instructions of a block");
    for (unsigned i = 0; i < size; ++i) {
      block.instructions.push_back(
          read_instruction(in, file.name_, first + std::uint64_t{i} * kInstructionBytes));
    }
    file.blocks_.push_back(std::move(block));
  }
  if (file.blocks_.size() != count) {
    throw FormatError(file.name_, 0,
                      "blocks: expected " + std::to_string(count) + ", found " +
                          std::to_string(file.blocks_.size()) + " before the end");
  }
  return file;
}

const IdtraceBlock* IdtraceBlocks::at(std::uint32_t position) const {
  const auto found = std::lower_bound(
      blocks_.begin(), blocks_.end(), position,
      [](const IdtraceBlock& block, std::uint32_t p) { return block.position < p; });
  return found != blocks_.end() && found->position == position ? &*found : nullptr;
}

bool looks_like_idtrace_blocks(std::span<const std::uint8_t> prefix, bool whole_file) {
  if (prefix.size() < kBlockHeader + kBlockFileBytes) return false;
  const std::uint32_t expected = ByteReader(prefix, {}).u32("blocks");
  std::size_t at = kBlockHeader;
  std::uint32_t found = 0;
  while (prefix.size() - at >= kBlockFileBytes) {
    const std::size_t end = at + kBlockFileBytes + kInstructionBytes * prefix[at + 4];
    if (prefix[at + 4] == 0) return false;
    for (std::size_t i = at + kBlockFileBytes; i < end && i + kInstructionBytes <= prefix.size();
         i += kInstructionBytes) {
      const int entries = static_cast<std::int8_t>(prefix[i + 3]);
      if (prefix[i + 2] == 0 || prefix[i + 2] > kMaxInstruction || entries > kMaxEntries ||
          entries < -kMaxEntries) {
        return false;
      }
    }
    if (end > prefix.size()) return !whole_file;
    at = end;
    ++found;
  }
  return whole_file ? at == prefix.size() && found == expected : found <= expected;
}

std::uint32_t IdtraceBlockWriter::add(std::uint32_t address,
                                      std::span<const IdtraceInstruction> instructions) {
  CITCAT_ASSERT(!instructions.empty() && instructions.size() <= kIdtraceMaxWritten);
  const std::uint64_t position = kBlockHeader + records_.size();
  if (position > 0xffffffff) {
    throw IoError("a trace names blocks by 32 bits: the blocks of this run need more than 4 GiB");
  }
  ByteWriter out;
  out.u32(address);
  out.u8(static_cast<std::uint8_t>(instructions.size()));
  out.u8(0);
  for (const IdtraceInstruction& i : instructions) {
    out.u16(static_cast<std::uint16_t>(i.id));
    out.u8(i.bytes);
    out.u8(static_cast<std::uint8_t>(i.entries));
  }
  records_.insert(records_.end(), out.view().begin(), out.view().end());
  ++count_;
  return static_cast<std::uint32_t>(position);
}

std::uint32_t IdtraceBlockWriter::traced_magic() const {
  return static_cast<std::uint32_t>(hash64(records_));
}

void IdtraceBlockWriter::write(ByteSink& sink, std::uint32_t text_offset,
                               const IdtraceMagic& magic) const {
  ByteWriter header;
  header.u32(count_);
  header.u32(text_offset);
  header.u32(magic.original);
  header.u32(magic.traced);
  sink.write(header.view());
  if (!records_.empty()) sink.write(records_);
}

}  // namespace citcat
