// REP STOS that runs to the end of its segment.
// expected: 4 bytes at 00000100 were written through ES
#include "start.inc"
  ENTRY SPARE, 0x000000ff, 0x00409300
  mov al, 0x5a
  out 0x80, al
  mov eax, SPARE
  mov es, eax
  mov edi, 0xf0
  mov ecx, 100
  xor eax, eax
  rep stosd
  jmp done
