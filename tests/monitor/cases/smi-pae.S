// System management interrupts with PAE: RSM loads the page-directory pointers as MOV to CR3 does.
// expected: match
// options: -machine pc -vga std
#include "start.inc"
#include "smm.inc"
  .bss
  .align 4096
pages:
  .skip 4096
pointers:
  .skip 32
  .text
  MANAGE
  WIDE_ENTRIES pages, 0x87, 8, 0x200000
  mov dword ptr [pointers], offset pages + 1
  mov eax, 0x30
  mov cr4, eax
  mov eax, offset pointers
  mov cr3, eax
  mov al, 0x5a
  out 0x80, al
  mov eax, cr0
  or eax, 0x80000000
  mov cr0, eax
  SMI 1
  mov [scratch], ebx
  SMI 0x20
  mov [scratch + 4096], ebx
  SMI 4
  mov eax, cr3
  mov cr3, eax
  SMI 1
  jmp done
