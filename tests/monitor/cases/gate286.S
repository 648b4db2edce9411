// INT n through a gate of the 286 whose last word is zero.
// expected: match
#include "start.inc"
  ENTRY SPARE, 0x0000ffff, 0x004f9b10
  GATE 0x40, 2f, SPARE, 0x86
  mov word ptr [idt + 8 * 0x40 + 6], 0
  sub word ptr [idt + 8 * 0x40], 0
  mov al, 0x5a
  out 0x80, al
  int 0x40
2:
  nop
  jmp done
