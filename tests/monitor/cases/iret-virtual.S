// IRET of level 3 with VM set in the image of EFLAGS.
// expected: virtual-8086 mode
#include "start.inc"
  mov word ptr [scratch], 0xfeeb
  LEVEL3
  mov al, 0x5a
  out 0x80, al
  push 0
  push 0
  push 0
  push 0
  push 0
  push 0
  push 0x20002
  push 0
  push 0x1000
  iretd
  jmp done
