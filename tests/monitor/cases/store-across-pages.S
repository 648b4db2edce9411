// A store to the end of the page that its own code lies in, and to the page behind it: what is before
// it in its block is fetched as it was.
// expected: match
// caches: none i486 pentium
// external changes: 0
#include "start.inc"
  mov al, 0x5a
  out 0x80, al
  jmp 1f
  .balign 4096
  .fill 4096 - 32, 1, 0x90
1:
  mov eax, 1
  mov ebx, 2
  mov word ptr [edge - 1], 0x4143
  jmp edge
  .fill 11, 1, 0x90
edge:
  nop
  nop
  mov [scratch], ebx
  mov [scratch + 4], ecx
  jmp done
