// INT n through a gate to a code segment that is not present.
// expected: match
#include "start.inc"
  ENTRY SPARE, 0x0000ffff, 0x00cf1b00
  GATE 0x40, done, SPARE
  mov al, 0x5a
  out 0x80, al
  int 0x40
  jmp done
