// Words at the end of segments of real mode: the last that fits, and one that does not.
// expected: 2 bytes at 0000ffff were read through DS
#include "start.inc"
  REAL
  mov ax, [0xfffe]
  mov bx, 0xfffc
  mov eax, [bx]
  mov ax, 0x100
  mov es, ax
  mov es:[bx], ax
  int 3
  mov es:[bx], ax
  mov ax, [0xffff]
  REAL_END
