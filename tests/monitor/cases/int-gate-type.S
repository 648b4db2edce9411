// INT n through an entry of the IDT that is a call gate.
// expected: match
#include "start.inc"
  GATE 0x40, done, CODE0, 0x8c
  mov al, 0x5a
  out 0x80, al
  int 0x40
  jmp done
