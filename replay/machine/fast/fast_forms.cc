#include "replay/machine/fast/fast_forms.h"

#include <cstddef>

#include "x86/decode/opcode_table.h"

namespace citcat::fast {

namespace {

constexpr FastForm at(Way way, unsigned row) { return {way, static_cast<std::uint8_t>(row)}; }

constexpr FastForm form_of(FastOpcode opcode) {
  const Operation o = opcode.operation;
  switch (opcode.word) {
#define ONE(WORD, WAY, ROW) \
  case FastWord::WORD:      \
    return at(Way::WAY, ROW);
#define EACH(WORD, WAY, ROW) \
  case FastWord::WORD:       \
    return at(Way::WAY, ROW + place_among(FastWord::WORD, o));
    FAST_WORDS(ONE, EACH)
#undef ONE
#undef EACH
  }
  return {};
}

constexpr auto kForms = [] {
  std::array<FastForm, kFastOpcodes.size()> forms{};
  for (std::size_t i = 0; i < forms.size(); ++i) forms[i] = form_of(kFastOpcodes[i]);
  return forms;
}();

}  // namespace

FastForm fast_form(const OpcodeRow& row) {
  return kForms[static_cast<std::size_t>(&row - opcode_rows().data())];
}

}  // namespace citcat::fast
