// INT n and IRET without end, of which the emulator logs a kilobyte each.
// expected: match
#include "start.inc"
  GATE 0x40, stepped, CODE0, 0x8e
  mov al, 0x5a
  out 0x80, al
  mov ecx, 300000
1:
  int 0x40
  loop 1b
  jmp done
