// ICEBP, INT3 in both forms and INTO in real mode.
// expected: match
#include "start.inc"
  REAL
  nop
  .byte 0xf1
  nop
  int3
  .byte 0xcd, 3
  int 1
  mov al, 0x7f
  add al, 1
  into
  xor ax, ax
  into
  nop
  REAL_END
