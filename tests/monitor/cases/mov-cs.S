// MOV to CS.
// expected: MOV to CS
#include "start.inc"
  mov al, 0x5a
  out 0x80, al
  mov eax, CODE0
  .byte 0x8e, 0xc8
  TELL 0x22
  jmp done
