// INT n through a gate to a code segment of level 3.
// expected: match
#include "start.inc"
  GATE 0x40, done, CODE3
  mov al, 0x5a
  out 0x80, al
  int 0x40
  jmp done
