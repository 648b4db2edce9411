// Two data breakpoints at one store, and one that is not enabled: the handler reads DR6.
// expected: DR6 was read
#include "start.inc"
  GATE 1, told, CODE0, 0xef
  mov eax, offset scratch + 8
  mov dr0, eax
  mov dr1, eax
  mov dr2, eax
  mov eax, 0x0ddd000a
  mov dr7, eax
  mov al, 0x5a
  out 0x80, al
  mov dword ptr [scratch + 8], 7
  jmp done
told:
  mov eax, dr6
  iretd
