// The same of a trap gate.
// expected: a gate of the 286
#include "start.inc"
  ENTRY SPARE, 0x0000ffff, 0x004f9b10
  GATE 0x40, 2f, SPARE, 0x87
  mov word ptr [idt + 8 * 0x40 + 6], 0x1234
  mov al, 0x5a
  out 0x80, al
  int 0x40
2:
  nop
  jmp done
