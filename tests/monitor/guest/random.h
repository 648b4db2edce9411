#pragma once
// Numbers that follow from the seed.

#include <stdbool.h>
#include <stdint.h>

#include "machine.h"

void seed_random(uint32_t seed);
uint32_t random32(void);
// Below `end`, which is not 0.
uint32_t random_below(uint32_t end);
// True once in `times`.
bool one_in(uint32_t times);
// An address in what programs may use, mostly; else where nothing is, or any in the lower half.
uint32_t random_pointer(void);
// The same of all that a register holds: in long mode of any of the places where these pages are.
word random_address(void);
// The selector of a data segment; sometimes one that is refused. None is null: the emulator
// accesses memory by null selectors.
uint16_t random_selector(void);

// One of the frames that programs use.
uint32_t random_frame(void);
// The bits of an entry of page tables beside the frame.
uint64_t random_entry(void);
// An entry for a page. None that may not be read lies behind one that may only be read: where an
// operand to be updated is in both, the emulator finds the second one first.
uint64_t random_page(word linear);
