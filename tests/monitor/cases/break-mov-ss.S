// A data breakpoint at the operand of MOV to SS. A processor reports it behind the next instruction, QEMU at once.
// expected: right behind a load of SS
#include "start.inc"
  GATE 1, stepped, CODE0, 0xef
  GATE 3, stepped, CODE0, 0xef
  GATE 4, stepped, CODE0, 0xef
  GATE 0x40, stepped, CODE0, 0xef
  mov eax, offset scratch + 8
  mov dr0, eax
  mov dword ptr [scratch + 8], DATA0
  mov eax, 0x000f0002
  mov dr7, eax
  mov al, 0x5a
  out 0x80, al
  mov ss, [scratch + 8]
  nop
  nop
  jmp done
