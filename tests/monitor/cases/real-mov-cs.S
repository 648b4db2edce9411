// MOV to CS in real mode.
// expected: MOV to CS
#include "start.inc"
  REAL
  xor ax, ax
  .byte 0x8e, 0xc8
  nop
  REAL_END
