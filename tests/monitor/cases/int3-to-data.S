// INT3 through a gate to a data segment.
// expected: match
#include "start.inc"
  GATE 3, done, DATA0
  mov al, 0x5a
  out 0x80, al
  int3
  jmp done
