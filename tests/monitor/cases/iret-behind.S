// IRET to an offset behind the end of its segment.
// expected: beyond the end
#include "start.inc"
  ENTRY SPARE, 0x0000ffff, 0x00009b00
  mov al, 0x5a
  out 0x80, al
  push 2
  push SPARE
  push 0x123456
  iretd
  jmp done
