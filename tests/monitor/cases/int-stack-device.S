// An interrupt whose stack lies where there is no RAM: what is pushed there cannot be read back to be
// recorded.
// expected: the stack of an interrupt lies in memory that is not RAM
#include "start.inc"
  GATE 0x40, 2f
  mov al, 0x5a
  out 0x80, al
  nop
  mov esp, 0xd0001000
  int 0x40
2:
  nop
  jmp done
