// CALL through a gate of the 286 whose last word is not zero.
// expected: a call gate of the 286
#include "start.inc"
  ENTRY SPARE, 0x0000ffff, 0x004f9b10
  ENTRY SPARE + 8, SPARE << 16, 0xffff8400
  mov eax, offset 2f
  mov word ptr [gdt + SPARE + 8], ax
  mov al, 0x5a
  out 0x80, al
  FAR_CALL SPARE+8
2:
  nop
  jmp done
