// INT 30h through a task gate.
// expected: a task gate was used
#include "start.inc"
  .set OTHER, SPARE
  .set GATE_TO_OTHER, SPARE + 8
  .bss
  .align 16
other:
  .skip 104
  .text
  mov dword ptr [other + 0x20], offset other_task
  mov dword ptr [other + 0x24], 2
  mov dword ptr [other + 0x38], offset stack3_end
  mov dword ptr [other + 0x48], DATA0
  mov dword ptr [other + 0x4c], CODE0
  mov dword ptr [other + 0x50], DATA0
  mov dword ptr [other + 0x54], DATA0
  mov eax, offset other
  mov edx, eax
  shl eax, 16
  mov ax, 0x67
  mov dword ptr [gdt + OTHER], eax
  mov eax, edx
  shr eax, 16
  movzx ecx, al
  and eax, 0xff00
  shl eax, 16
  or eax, ecx
  or eax, 0x8900
  mov dword ptr [gdt + OTHER + 4], eax
  ENTRY GATE_TO_OTHER, OTHER << 16, 0x8500
  mov al, 0x5a
  out 0x80, al
  xor eax, eax
  mov dword ptr [idt + 8 * 0x30], OTHER << 16
  mov dword ptr [idt + 8 * 0x30 + 4], 0x8500
  int 0x30
  TELL 1
  jmp done
other_task:
  TELL 2
  iretd
  jmp done
