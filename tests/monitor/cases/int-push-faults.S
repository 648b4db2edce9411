// INT n whose frame lies in two pages, of which the second is not there.
// expected: match
#include "start.inc"
  GATE 0x40, done, CODE0, 0xee
  GATE 14, 2f, SPARE
  ENTRY SPARE, 0x0000ffff, 0x00cfff00
  mov dword ptr [task + 4], offset stack + 8
  PAGING
  PAGE scratch + 4096, 6
  mov eax, cr3
  mov cr3, eax
  LEVEL3
  mov al, 0x5a
  out 0x80, al
  int 0x40
2:
  nop
  jmp done
