// System management interrupts in long mode: at levels 0 and 3 of 64-bit mode and in compatibility
// mode, with SMBASE in SMRAM and moved to RAM.
// expected: match
// options: -machine pc -vga std
// processor: qemu64
  .set AMD64, 1
#include "start.inc"
#include "smm.inc"
  .bss
  .align 4096
tables:
  .skip 3 * 4096
long_idt:
  .skip 16 * 32
  .data
long_idt_register:
  .word 16 * 32 - 1
  .long long_idt, 0
  .text
.macro LONG_GATE vector, handler
  mov eax, offset \handler
  mov word ptr [long_idt + 16 * \vector], ax
  mov word ptr [long_idt + 16 * \vector + 2], SPARE
  mov word ptr [long_idt + 16 * \vector + 4], 0xee00
  shr eax, 16
  mov word ptr [long_idt + 16 * \vector + 6], ax
.endm
  ENTRY SPARE, 0, 0x00209b00        // 64-bit code of level 0
  ENTRY SPARE + 8, 0x0000ffff, 0x00cff300
  ENTRY SPARE + 16, 0, 0x0020fb00   // 64-bit code of level 3
  mov dword ptr [task + 8], 0   // with the dword before it the stack of level 0
  LONG_GATE 3, done64
  LONG_GATE 13, done64
  LONG_GATE 14, done64
  MANAGE
  mov dword ptr [tables], offset tables + 0x1007
  mov dword ptr [tables + 0x1000], offset tables + 0x2007
  WIDE_ENTRIES "tables + 0x2000", 0x87, 16, 0x200000
  mov eax, 0x20
  mov cr4, eax
  mov eax, offset tables
  mov cr3, eax
  mov ecx, 0xc0000080
  rdmsr
  or eax, 0x901   // SCE, LME, NX
  wrmsr
  mov al, 0x5a
  out 0x80, al
  mov eax, cr0
  or eax, 0x80000000
  mov cr0, eax
  SMI 1           // compatibility mode
  SMI 4
  lidt [long_idt_register]
  ljmp SPARE, offset 1f
1:                // 64-bit mode: instructions that are the same in both, or spelt out
  .byte 0x48, 0xbb
  .long 0x11223344, 0x55667788           // mov rbx
  .byte 0x49, 0xbf
  .long 0x99aabbcc, 0xddeeff00           // mov r15
  .byte 0x49, 0x89, 0xd8                 // mov r8, rbx
  SMI 1
  .byte 0x48, 0x89, 0x1c, 0x25
  .long scratch                          // mov [scratch], rbx
  .byte 0x4c, 0x89, 0x3c, 0x25
  .long scratch + 8                      // mov [scratch + 8], r15
  .byte 0x4c, 0x89, 0x04, 0x25
  .long scratch + 16                     // mov [scratch + 16], r8
  SMI 4
  mov ecx, 0xc0000101
  mov eax, 0x1000
  mov edx, 0x12
  wrmsr                                  // the base of GS
  SMI 0x20
  SMI 4
  mov edx, 0xb2
  mov esi, offset scratch
  mov ecx, 2
  rep outsb
  rdmsr
  push SPARE + 8 + 3
  push offset stack3_end
  push 0x3002
  push SPARE + 16 + 3
  push offset 2f
  .byte 0x48
  iretd
2:
  SMI 1
  .byte 0x4c, 0x89, 0x3c, 0x25
  .long scratch + 24
  SMI 4
  int3
done64:
  mov al, 0xa5
  out 0x80, al
1:
  cli
  hlt
  jmp 1b
