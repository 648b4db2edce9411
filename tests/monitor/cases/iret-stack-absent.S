// IRET to level 3 on a stack that is not present.
// expected: other than #SS
#include "start.inc"
  ENTRY SPARE, 0x0000ffff, 0x00cf7300
  mov al, 0x5a
  out 0x80, al
  push SPARE + 3
  push 0
  push 2
  push CODE3
  push offset done
  iretd
  jmp done
