// Two data breakpoints at one store, whose handler does not ask which; then one at a time, read.
// expected: match
#include "start.inc"
  GATE 1, told, CODE0, 0xef
  mov eax, offset scratch + 8
  mov dr0, eax
  mov dr1, eax
  add eax, 4
  mov dr2, eax
  mov eax, 0x0ddd000a
  mov dr7, eax
  xor ebx, ebx
  mov al, 0x5a
  out 0x80, al
  mov dword ptr [scratch + 8], 7
  inc ebx
  mov eax, offset scratch + 128
  mov dr1, eax
  mov eax, 0x0ddd0022
  mov dr7, eax
  mov dword ptr [scratch + 12], 7
  mov dword ptr [scratch + 8], 7
  mov eax, 0x0ddd0020
  mov dr7, eax
  inc dword ptr [scratch + 12]
  jmp done
told:
  test ebx, ebx
  jz 1f
  mov eax, dr6
  mov [scratch + 64], eax
1:
  xor eax, eax
  mov dr6, eax
  iretd
