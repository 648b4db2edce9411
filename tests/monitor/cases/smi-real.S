// System management interrupts in real mode, between INT n and its handler's return too.
// expected: match
// options: -machine pc -vga std
#include "start.inc"
#include "smm.inc"
  MANAGE
  REAL
  SMI 1
  mov [0x5000], ebx
  SMI 0x20
  int 3
  SMI 1
  mov cx, 3
  mov dx, 0xb2
  mov si, 0x5000
  rep outsb
  mov word ptr [0x6f00], 0xb2e6   // OUT B2h, AL
  mov byte ptr [0x6f02], 0xcf
  int 3
  push ax
  SMI 4
  pop ax
  REAL_END
