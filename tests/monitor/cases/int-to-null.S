// INT n through a gate whose selector is null.
// expected: match
#include "start.inc"
  GATE 0x40, done, 0
  mov al, 0x5a
  out 0x80, al
  int 0x40
  jmp done
