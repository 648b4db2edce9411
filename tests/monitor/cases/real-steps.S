// Single steps in real mode, over ICEBP, INT3 and REP too.
// expected: match
#include "start.inc"
  REAL
  pushf
  pop ax
  or ah, 1
  push ax
  popf
  nop
  .byte 0xf1
  nop
  int3
  nop
  mov cx, 3
  mov di, 0x6000
  rep stosb
  nop
  mov cx, 1
  rep stosb
  nop
  push 2
  popf
  nop
  REAL_END
