// A dword that begins within a segment and ends behind it.
// expected: 4 bytes at 000000fd were read through ES, whose limit or type makes processors refuse it with #GP
#include "start.inc"
  ENTRY SPARE, 0x000000ff, 0x00409300
  mov al, 0x5a
  out 0x80, al
  mov eax, SPARE
  mov es, eax
  mov eax, es:[0xfd]
  jmp done
