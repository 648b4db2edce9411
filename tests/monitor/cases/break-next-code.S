// A single step with a code breakpoint at the next instruction, in DR6 of which this emulator has both.
// expected: DR6 was read
#include "start.inc"
  GATE 1, told, CODE0, 0xef
  mov eax, offset 1f
  mov dr3, eax
  mov eax, 0x00000080
  mov dr7, eax
  mov al, 0x5a
  out 0x80, al
  pushfd
  or dword ptr [esp], 0x100
  popfd
  nop
1:
  nop
  jmp done
told:
  and dword ptr [esp + 8], 0xfffffeff
  mov eax, dr6
  iretd
