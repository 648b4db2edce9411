#pragma once
// Which parts of a block are reported: decided when the emulator translates it.

#include <cstdint>

namespace citcat::monitor {

/// A callback of the emulator, with arguments of both versions of its interface. A block has been
/// translated: our number and the block, or the block and our word.
void on_translate(std::uintptr_t first, std::uintptr_t second);

}  // namespace citcat::monitor
