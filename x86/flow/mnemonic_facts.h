#pragma once
// How an instruction makes its result, as far as its name alone says it. Private to the room.

#include <Zydis/Zydis.h>

namespace citcat::flow {

/// Byte i of what it writes is made of byte i of what it reads alone.
bool is_bytewise(ZydisMnemonic mnemonic);
/// Whether byte i of the result is made of bytes 0 to i: in sums and in low halves of products.
bool carries(ZydisMnemonic mnemonic);
/// With both operands the same register the result is a constant.
bool clears_register(ZydisMnemonic mnemonic);

}  // namespace citcat::flow
