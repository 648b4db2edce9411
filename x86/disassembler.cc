#include "x86/disassembler.h"

#include <Zydis/Zydis.h>

#include <cstdio>
#include <optional>

#include "x86/zydis_mode.h"

namespace citcat {
namespace {

ZydisFormatterFunc default_address = nullptr;

/// Prints the target of a relative branch in code of 16 bits as a linear address, as all addresses
/// around it are. Zydis cuts it to 16 bits, which is right for an offset in CS only, and nobody
/// knows here where CS begins: a branch across an end of its segment is shown without the wrap.
ZyanStatus print_address(const ZydisFormatter* formatter, ZydisFormatterBuffer* buffer,
                         ZydisFormatterContext* context) {
  const ZydisDecodedOperand& operand = *context->operand;
  if (operand.type != ZYDIS_OPERAND_TYPE_IMMEDIATE || !operand.imm.is_relative) {
    return default_address(formatter, buffer, context);
  }
  auto target = static_cast<std::int64_t>(context->runtime_address + context->instruction->length +
                                          operand.imm.value.u);
  if (target < 0) target += 0x10000;  // CS begins at 0, and the branch goes across its end
  char text[16];
  std::snprintf(text, sizeof text, "0x%04X", static_cast<std::uint32_t>(target));
  ZYAN_CHECK(ZydisFormatterBufferAppend(buffer, ZYDIS_TOKEN_ADDRESS_ABS));
  ZyanString* string = nullptr;
  ZYAN_CHECK(ZydisFormatterBufferGetString(buffer, &string));
  ZyanStringView view;
  ZYAN_CHECK(ZyanStringViewInsideBuffer(&view, text));
  return ZyanStringAppend(string, &view);
}

ZydisFormatter make_formatter(bool of_16_bits) {
  ZydisFormatter formatter;
  ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL);
  if (of_16_bits) {
    const void* hook = reinterpret_cast<const void*>(&print_address);
    ZydisFormatterSetHook(&formatter, ZYDIS_FORMATTER_FUNC_PRINT_ADDRESS_ABS, &hook);
    default_address = reinterpret_cast<ZydisFormatterFunc>(const_cast<void*>(hook));
  }
  return formatter;
}

std::optional<std::string> disassemble(std::span<const std::uint8_t> bytes, std::uint64_t address,
                                       int bits) {
  static const ZydisFormatter linear_targets = make_formatter(true), plain = make_formatter(false);
  const ZydisMode mode = zydis_mode(bits);
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, mode.machine, mode.stack);
  ZydisDecodedInstruction instruction;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
  const ZyanStatus status =
      ZydisDecoderDecodeFull(&decoder, bytes.data(), bytes.size(), &instruction, operands);
  if (!ZYAN_SUCCESS(status) || instruction.length != bytes.size()) return std::nullopt;
  char text[96];
  const ZydisFormatter& formatter = bits == 16 ? linear_targets : plain;
  ZydisFormatterFormatInstruction(&formatter, &instruction, operands,
                                  instruction.operand_count_visible, text, sizeof text, address,
                                  nullptr);
  return text;
}

}  // namespace

std::string Disassembler::text(std::span<const std::uint8_t> bytes, std::uint64_t address) {
  const int other = bits_ == 16 ? 32 : 16;
  if (auto text = disassemble(bytes, address, bits_)) return *text;
  if (guess_) {
    if (auto text = disassemble(bytes, address, other)) {
      bits_ = other;
      return *text;
    }
  }
  return "(bad)";
}

}  // namespace citcat
