#pragma once
// Numbers that follow from the seed.

#include <stdbool.h>
#include <stdint.h>

void seed_random(uint32_t seed);
uint32_t random32(void);
// Below `end`, which is not 0.
uint32_t random_below(uint32_t end);
// True once in `times`.
bool one_in(uint32_t times);
// An address in what programs may use, mostly; else where nothing is, or any in the lower half.
uint32_t random_pointer(void);
// The selector of a data segment; sometimes one that is refused. None is null: the emulator
// accesses memory by null selectors.
uint16_t random_selector(void);
