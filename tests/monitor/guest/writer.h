#pragma once
// Writes the parts that instructions are made of: prefixes, ModRM, immediates, places to go to.

#include <stdbool.h>
#include <stdint.h>

#include "machine.h"
#include "program.h"
#include "rules.h"

enum { kMostJumps = kMostInstructions };

// A distance, or an offset in the code segment, that is known when all instructions are written.
struct jump {
  uint8_t* field;
  uint8_t size;
  bool absolute;
  uint32_t instruction;  // which it belongs to
};

struct writer {
  uint8_t* at;
  const struct program_kind* kind;
  bool operand32, address32;
  uint32_t rex;         // in front of the opcode that is written; 0 for none
  bool whole_register;  // it writes registers of 64 bits
  bool far_operand;     // its operand may lie anywhere from where ModRM names it
  uint8_t* start[kMostInstructions + 1];
  uint32_t count;
  struct jump jump[kMostJumps];
  uint32_t jumps;
  uint32_t linear;  // of a program that is not in virtual-8086 mode: the one at `first`
  const uint8_t* first;
};

enum { kRexB = 1, kRexX = 2, kRexR = 4, kRexW = 8, kRex = 0x40 };

// What the programs of this run may contain.
extern struct choice {
  // Whether they save the x87's registers, those of 32 bits by XSAVE alone. Then they have no MMX,
  // which leaves the upper 16 bits of a register as they were in the emulator.
  bool saves_fpu;
  bool saves_extended_state;  // and by XSAVE, too
  // Whether SYSENTER is there in compatibility mode: the emulator executes AMD's, which have it
  // not.
  bool enters_from_compatibility;
} choice;

void put8(struct writer* w, uint32_t value);
void put16(struct writer* w, uint32_t value);
void put32(struct writer* w, uint32_t value);
void put64(struct writer* w, uint64_t value);
// As wide as the operand.
void put_operand(struct writer* w, uint32_t value);
// ModRM of an operand in memory, with what belongs to it.
void put_memory(struct writer* w, uint32_t reg);
// A supervisor's stack pointer is left alone, and RSP and RBP are not written as a whole: whether
// an instruction may name the register behind this bit of REX.
bool may_be_named(const struct writer* w, uint32_t reg, uint32_t rex_bit);
uint32_t random_register_behind(const struct writer* w, uint32_t rex_bit);
uint32_t random_register(const struct writer* w);
// ModRM of any operand, or of one in memory.
void put_modrm(struct writer* w, uint32_t digits, bool memory);
// A field of `size` bytes for a place to go to.
void put_target(struct writer* w, uint32_t size, bool absolute);
// Gives each jump an instruction to go to. It is a later one where nothing would end a loop.
void set_targets(struct writer* w, uint32_t offset, const uint8_t* first);
// Prefixes, and REX, which put_prefixes() writes behind them.
void put_prefixes(struct writer* w, const struct rule* rule, bool locked);
void put_rex(struct writer* w, const struct rule* rule);
// What follows an opcode.
enum form form_of(const struct rule* rule, uint8_t opcode);
void put_rest(struct writer* w, enum form form, uint8_t opcode, uint32_t digits, bool memory);
// PUSH of an immediate as wide as code.
void put_push(struct writer* w, uint32_t value);
// MOV AX, selector.
void put_selector(struct writer* w, uint32_t selector);
// ES becomes a segment with base 0: what follows may name any address by put_absolute().
void put_flat_segment(struct writer* w);
// An instruction with an operand at this linear address, its immediate excepted.
void put_absolute(struct writer* w, bool second, uint32_t opcode, uint32_t digit, uint32_t linear);
// LEA of a target to a register.
void put_target_address(struct writer* w, uint32_t reg);
