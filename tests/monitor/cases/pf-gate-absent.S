// A page fault, and #NP on its way, are a double fault.
// expected: match
#include "start.inc"
  GATE 14, done, CODE0, 0x0e
  PAGING
  mov dword ptr [directory + 4], 0
  mov eax, cr3
  mov cr3, eax
  mov al, 0x5a
  out 0x80, al
  mov eax, [0x400123]
  jmp done
