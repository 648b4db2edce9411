#include "tools/analyses/instruction_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "x86/disassembler.h"

namespace citcat::tools {

std::uint8_t segment_bits(const DecodedInstruction& info) {
  if (info.bits64) return 64;
  return (info.address_bits == 32) != info.address_prefix ? 32 : 16;
}

InstructionKey InstructionKey::of(const StaticInstruction& instruction) {
  InstructionKey key;
  key.linear = instruction.linear;
  key.length = instruction.info.length;
  key.bits = segment_bits(instruction.info);
  std::copy_n(instruction.info.bytes.begin(), key.length, key.bytes.begin());
  return key;
}

void InstructionKey::save(ByteWriter& out) const {
  out.varint(linear.value);
  out.u8(bits);
  out.u8(length);
  out.bytes({bytes.data(), length});
}

InstructionKey InstructionKey::load(ByteReader& in) {
  InstructionKey key;
  key.linear = LinearAddr{in.varint("address of an instruction")};
  key.bits = in.u8("code size");
  key.length = in.u8("length of an instruction");
  if (key.bits != 16 && key.bits != 32 && key.bits != 64) {
    in.fail("expected a code size of 16, 32 or 64");
  }
  if (key.length == 0 || key.length > kMaxInstructionBytes) in.fail("expected 1 to 15 bytes");
  const auto bytes = in.bytes(key.length, "bytes of an instruction");
  std::copy(bytes.begin(), bytes.end(), key.bytes.begin());
  return key;
}

std::string InstructionKey::bytes_text() const {
  std::string text;
  for (unsigned i = 0; i < length; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

std::string InstructionKey::text() const {
  return Disassembler(bits).text({bytes.data(), length}, linear.value);
}

DecodedInstruction InstructionKey::decoded() const {
  const CpuModel model = bits == 64 ? CpuModel::x86_64 : CpuModel::unknown;
  return decode_instruction({bytes.data(), length}, {bits == 32, false, bits == 64}, model);
}

std::string mnemonic_of(const std::string& text) {
  static constexpr std::string_view kPrefixes[] = {
      "rep", "repe", "repz", "repne", "repnz", "lock", "xacquire", "xrelease", "bnd", "notrack"};
  std::size_t begin = 0;
  for (;;) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string_view word = std::string_view(text).substr(begin, end - begin);
    const bool prefix =
        std::find(std::begin(kPrefixes), std::end(kPrefixes), word) != std::end(kPrefixes);
    if (!prefix || end == text.size()) return std::string(word);
    begin = end + 1;
  }
}

}  // namespace citcat::tools
