// INT n of level 3 through a gate to a conforming segment, at which the level stays.
// expected: match
#include "start.inc"
  ENTRY SPARE, 0x0000ffff, 0x00cf9f00
  GATE 0x40, 2f, SPARE, 0xee
  LEVEL3
  mov al, 0x5a
  out 0x80, al
  int 0x40
2:
  nop
  jmp done
