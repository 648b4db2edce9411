// A code breakpoint, and the instruction behind it.
// expected: match
#include "start.inc"
  GATE 1, stepped, CODE0, 0xef
  GATE 3, stepped, CODE0, 0xef
  GATE 4, stepped, CODE0, 0xef
  GATE 0x40, stepped, CODE0, 0xef
  mov eax, offset 2f
  mov dr0, eax
  mov eax, 2
  mov dr7, eax
  GATE 1, resumed, CODE0, 0x8e
  mov al, 0x5a
  out 0x80, al
  nop
2:
  nop
  nop
  mov eax, offset 3f
  mov dr0, eax
  nop
3:
  nop
  jmp done
