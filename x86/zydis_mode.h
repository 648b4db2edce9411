#pragma once
// The modes of a Zydis decoder, by the default size of the code. Private to the code that uses one.

#include <Zydis/Zydis.h>

namespace citcat {

struct ZydisMode {
  ZydisMachineMode machine = ZYDIS_MACHINE_MODE_LEGACY_32;
  ZydisStackWidth stack = ZYDIS_STACK_WIDTH_32;
};

/// Zydis' mode for code of 16, 32 or 64 bits.
inline ZydisMode zydis_mode(int bits) {
  switch (bits) {
    case 16:
      return {ZYDIS_MACHINE_MODE_LEGACY_16, ZYDIS_STACK_WIDTH_16};
    case 64:
      return {ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64};
    default:
      return {};
  }
}

}  // namespace citcat
