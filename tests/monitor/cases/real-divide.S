// An exception of real mode, whose handler returns to it once.
// expected: match
#include "start.inc"
  REAL
  mov byte ptr [0x6f00], 0x83
  mov byte ptr [0x6f01], 0xc1
  mov byte ptr [0x6f02], 1
  mov byte ptr [0x6f03], 0xcf
  xor dx, dx
  xor cx, cx
  mov ax, 5
  div cx
  nop
  REAL_END
