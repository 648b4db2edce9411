// INT n through a gate whose selector lies behind the GDT.
// expected: match
#include "start.inc"
  GATE 0x40, done, 0x7ff8
  mov al, 0x5a
  out 0x80, al
  int 0x40
  jmp done
