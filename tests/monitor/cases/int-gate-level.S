// INT n of level 3 through a gate of level 0.
// expected: match
#include "start.inc"
  LEVEL3
  mov al, 0x5a
  out 0x80, al
  int 0x40
  jmp done
