// A single step over an instruction that faults.
// expected: match
#include "start.inc"
  GATE 1, stepped, CODE0, 0xef
  GATE 3, stepped, CODE0, 0xef
  GATE 4, stepped, CODE0, 0xef
  GATE 0x40, stepped, CODE0, 0xef
  GATE 6, skipped, CODE0, 0x8e
  mov al, 0x5a
  out 0x80, al
  pushfd
  or dword ptr [esp], 0x100
  popfd
  ud2
  nop
  jmp done
