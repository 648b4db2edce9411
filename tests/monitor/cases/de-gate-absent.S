// #DE, and #NP on its way, are a double fault.
// expected: match
#include "start.inc"
  GATE 0, done, CODE0, 0x0e
  mov al, 0x5a
  out 0x80, al
  xor edx, edx
  xor ecx, ecx
  mov eax, 1
  div ecx
  jmp done
