// A store to a segment that may be read only.
// expected: 4 bytes at 00000010 were written through DS
#include "start.inc"
  ENTRY SPARE, 0x000000ff, 0x00409100
  mov al, 0x5a
  out 0x80, al
  mov eax, SPARE
  mov ds, eax
  mov eax, [0x10]
  mov [0x10], eax
  jmp done
