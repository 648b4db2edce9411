// Data breakpoints at a store, a read and within REP.
// expected: match
#include "start.inc"
  GATE 1, stepped, CODE0, 0xef
  GATE 3, stepped, CODE0, 0xef
  GATE 4, stepped, CODE0, 0xef
  GATE 0x40, stepped, CODE0, 0xef
  mov eax, offset scratch + 8
  mov dr0, eax
  mov eax, 0x000f0002
  mov dr7, eax
  mov al, 0x5a
  out 0x80, al
  mov dword ptr [scratch + 8], 7
  mov eax, [scratch + 8]
  nop
  mov edi, offset scratch
  mov ecx, 5
  rep stosd
  nop
  jmp done
