// INT n of level 3 through a gate of level 3 to a data segment.
// expected: match
#include "start.inc"
  GATE 0x40, done, DATA0, 0xee
  LEVEL3
  mov al, 0x5a
  out 0x80, al
  int 0x40
  jmp done
