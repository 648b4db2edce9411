// INT n to an offset behind the end of its code segment, which this emulator does not look at.
// expected: delivered otherwise
#include "start.inc"
  ENTRY SPARE, 0x0000ffff, 0x00009b00
  GATE 0x40, done, SPARE
  mov al, 0x5a
  out 0x80, al
  int 0x40
  jmp done
