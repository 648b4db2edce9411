// Resets: the keyboard controller's, port 92h's, port CF9h's, and that of a shutdown, by an IDT
// without entries. Behind each the firmware loads the case again.
// expected: match
// options: -action reboot=reset
#include "start.inc"
  .set PASSED, 0x300000   // how many resets there were: memory stays
  mov eax, [PASSED]
  inc dword ptr [PASSED]
  cmp eax, 4
  je done
  lea eax, [ways + 4 * eax]
  jmp [eax]
  .balign 4
ways:
  .long keyboard, system_control, reset_control, no_table
keyboard:
  mov al, 0x5a
  out 0x80, al
  mov al, 0xfe
  out 0x64, al
  jmp waiting
system_control:
  in al, 0x92
  or al, 1
  out 0x92, al
  jmp waiting
reset_control:
  mov edx, 0xcf9
  mov al, 2
  out dx, al
  mov al, 6
  out dx, al
waiting:
  hlt
  jmp waiting
no_table:
  mov word ptr [idt_register], 0
  lidt [idt_register]
  int3
  jmp waiting
