#pragma once
// Random instructions, each as long as its opcode says. Jumps lead to others of them, or behind the
// last.

#include <stdbool.h>
#include <stdint.h>

// Where a program runs decides what it may contain.
struct program_kind {
  bool wide;        // code segment of 32 bits, or of 64
  bool supervisor;  // at level 0: nothing that leaves the program or loses its stack
  bool controls;    // level 0: it may change control registers
  bool ports_open;  // IOPL lets it reach ports and the interrupt flag: nothing that could last for
                    // ever
  bool virtual_8086;
  bool bits64;
};

enum { kMostInstructions = 14, kMostInstructionBytes = 160 };

// What the programs of this run may contain, at random. The machine is set up.
void choose_instructions(void);

// Writes up to kMostInstructions to `at`, each of kMostInstructionBytes at most; returns the end.
// `offset` is that of the first in its code segment, whose base is kTestLinear if it is one of 16
// bits.
uint8_t* write_program(uint8_t* at, uint32_t offset, const struct program_kind* kind);
