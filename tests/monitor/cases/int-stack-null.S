// INT n to level 0, whose stack is null.
// expected: match
#include "start.inc"
  GATE 0x40, done, CODE0, 0xee
  GATE 10, 2f, SPARE
  ENTRY SPARE, 0x0000ffff, 0x00cfff00
  mov dword ptr [task + 8], 0
  LEVEL3
  mov al, 0x5a
  out 0x80, al
  int 0x40
2:
  nop
  jmp done
