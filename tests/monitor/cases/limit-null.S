// A read through a null selector.
// expected: 4 bytes at 00000010 were read through GS
#include "start.inc"
  mov al, 0x5a
  out 0x80, al
  xor eax, eax
  mov gs, eax
  mov eax, gs:[0x10]
  jmp done
