// ICEBP.
// expected: match
#include "start.inc"
  GATE 1, stepped, CODE0, 0xef
  GATE 3, stepped, CODE0, 0xef
  GATE 4, stepped, CODE0, 0xef
  GATE 0x40, stepped, CODE0, 0xef
  mov al, 0x5a
  out 0x80, al
  nop
  .byte 0xf1
  nop
  jmp done
