// A push below the beginning of a stack that expands down.
// expected: were written through SS, whose limit or type makes processors refuse it with #SS
#include "start.inc"
  mov eax, offset scratch
  shr eax, 12
  mov dword ptr [gdt + SPARE], eax
  mov dword ptr [gdt + SPARE + 4], 0x00c09700
  mov al, 0x5a
  out 0x80, al
  mov eax, SPARE
  mov ss, eax
  mov esp, offset scratch + 0x1008
  push eax
  push eax
  push eax
  jmp done
