#pragma once

namespace citcat {

/// Memory that is allocated from now on lies in pages of 2 MiB as far as the system has such, is
/// large enough for what an import keeps at hand, and stays the program's: fewer and cheaper first
/// touches, fewer misses of the processor's TLB. Does nothing where that cannot be had.
void use_large_pages();

}  // namespace citcat
