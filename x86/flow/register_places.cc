#include "x86/flow/register_places.h"

#include <algorithm>

namespace citcat::flow {

std::optional<PlaceRange> places_of(ZydisRegister reg) {
  const ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
  const auto number = static_cast<unsigned>(std::max<int>(ZydisRegisterGetId(whole), 0));
  switch (ZydisRegisterGetClass(reg)) {
    case ZYDIS_REGCLASS_GPR8:
      return place::gpr(number, reg >= ZYDIS_REGISTER_AH && reg <= ZYDIS_REGISTER_BH ? 1 : 0, 1);
    case ZYDIS_REGCLASS_GPR16:
      return place::gpr(number, 0, 2);
    case ZYDIS_REGCLASS_GPR32:
      return place::gpr(number, 0, 4);
    case ZYDIS_REGCLASS_GPR64:
      return place::gpr(number, 0, 8);
    case ZYDIS_REGCLASS_XMM:
      if (number >= 16) return std::nullopt;
      return place::vector(number);
    case ZYDIS_REGCLASS_MMX:  // of these no larger one is known
      return place::stack(static_cast<unsigned>(ZydisRegisterGetId(reg)), 8);
    case ZYDIS_REGCLASS_SEGMENT:
      return place::segment(static_cast<unsigned>(ZydisRegisterGetId(reg)));
    case ZYDIS_REGCLASS_CONTROL: {
      const auto control = static_cast<unsigned>(ZydisRegisterGetId(reg));
      const unsigned place = control == 0 ? 0 : control == 8 ? 4 : control - 1;
      return place::one(place::kControl + std::min(place, 4u));
    }
    case ZYDIS_REGCLASS_DEBUG:
      return place::one(place::kDebug);
    default:
      break;
  }
  switch (reg) {
    case ZYDIS_REGISTER_GDTR:
      return place::one(place::kTables);
    case ZYDIS_REGISTER_IDTR:
      return place::one(place::kTables + 1);
    case ZYDIS_REGISTER_LDTR:
      return place::one(place::kTables + 2);
    case ZYDIS_REGISTER_TR:
      return place::one(place::kTables + 3);
    case ZYDIS_REGISTER_MXCSR:
      return place::one(place::kMxcsr);
    case ZYDIS_REGISTER_XCR0:
      return place::one(place::kXcr0);
    default:
      return std::nullopt;
  }
}

}  // namespace citcat::flow
