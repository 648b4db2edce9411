// A timer interrupt through a gate to a data segment.
// expected: match
#include "start.inc"
  GATE 0x20, done, DATA0
  CONTROLLERS
  mov al, 0x5a
  out 0x80, al
  sti
2:
  nop
  jmp 2b
  jmp done
