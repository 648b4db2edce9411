// IRET that sets TF.
// expected: match
#include "start.inc"
  GATE 1, stepped, CODE0, 0xef
  GATE 3, stepped, CODE0, 0xef
  GATE 4, stepped, CODE0, 0xef
  GATE 0x40, stepped, CODE0, 0xef
  mov al, 0x5a
  out 0x80, al
  pushfd
  or dword ptr [esp], 0x100
  push CODE0
  push offset 2f
  iretd
  nop
2:
  nop
  nop
  jmp done
