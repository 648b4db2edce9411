// CALL of level 3 through a gate to a conforming segment of level 0.
// expected: a conforming segment
#include "start.inc"
  ENTRY SPARE, 0x0000ffff, 0x00cf9f00
  ENTRY SPARE + 8, SPARE << 16, 0x0000ec00
  mov eax, offset 2f
  mov word ptr [gdt + SPARE + 8], ax
  shr eax, 16
  mov word ptr [gdt + SPARE + 14], ax
  LEVEL3
  mov al, 0x5a
  out 0x80, al
  FAR_CALL SPARE+8
2:
  nop
  jmp done
