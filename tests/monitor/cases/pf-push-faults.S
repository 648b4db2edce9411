// A page fault whose frame faults too is a double fault.
// expected: match
#include "start.inc"
  GATE 8, 2f, SPARE
  ENTRY SPARE, 0x0000ffff, 0x00cfff00
  GATE 14, done
  mov dword ptr [task + 4], offset scratch + 8192
  PAGING
  PAGE scratch + 4096, 6
  mov dword ptr [directory + 4], 0
  mov eax, cr3
  mov cr3, eax
  GATE 8, 2f, SPARE
  LEVEL3
  mov al, 0x5a
  out 0x80, al
  mov eax, [0x400123]
2:
  nop
  jmp done
