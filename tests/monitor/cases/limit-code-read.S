// A read of a code segment that may be executed only.
// expected: 4 bytes at 00000010 were read through CS
#include "start.inc"
  ENTRY SPARE, 0x0000ffff, 0x00cf9900
  mov al, 0x5a
  out 0x80, al
  .byte 0xea
  .long 1f
  .word SPARE
1:
  mov eax, cs:[0x10]
  jmp done
