// No-execute pages with PAE outside long mode: in an entry of a page, of a directory, and where the bit is reserved, at
// levels 0 and 3. The handler lets the page be executed and goes on.
// expected: match
// processor: qemu64
#include "start.inc"
  .bss
  .align 4096
pae_directory:
  .skip 4096
pae_table:
  .skip 4096
pointers:
  .skip 32
  .data
  .align 4096
code_page:
  ret
  .align 4096
level3_page:
  nop
  jmp done
  .text
  jmp begin

// Clears the mark in all entries that lead to the page, and tells the error code.
forbidden:
  pop eax
  out 0x81, al
  mov eax, cr2
  mov edi, eax
  shr edi, 12
  mov dword ptr [pae_table + 8 * edi + 4], 0
  shr edi, 9
  mov dword ptr [pae_directory + 8 * edi + 4], 0
  invlpg [eax]
  iretd

// Bit 63 of the entry that maps a label's page.
.macro FORBID label
  mov edi, offset \label
  shr edi, 12
  mov dword ptr [pae_table + 8 * edi + 4], 0x80000000
  invlpg [\label]
.endm

begin:
  GATE 14, forbidden
  WIDE_ENTRIES pae_table, 7, 512, 0x1000
  mov dword ptr [pae_directory], offset pae_table + 7
  mov dword ptr [pae_directory + 8], 0x200087
  mov dword ptr [pointers], offset pae_directory + 1
  mov ecx, 0xc0000080
  rdmsr
  or eax, 0x800
  wrmsr
  mov eax, 0x30
  mov cr4, eax
  mov eax, offset pointers
  mov cr3, eax
  mov al, 0x5a
  out 0x80, al
  mov eax, cr0
  or eax, 0x80000000
  mov cr0, eax
  FORBID code_page
  mov eax, [code_page]   // it may be read
  mov [code_page + 64], eax
  call code_page
  call code_page
  // All that the directory's second entry maps; the first page of it has code.
  mov byte ptr [0x200000], 0xc3
  mov dword ptr [pae_directory + 12], 0x80000000
  invlpg [0x200000]
  mov eax, 0x200000
  mov ebx, [eax]
  call eax
  // Without EFER.NXE the bit is reserved: a read faults too.
  mov ecx, 0xc0000080
  rdmsr
  and eax, 0xfffff7ff
  wrmsr
  FORBID code_page
  mov eax, [code_page]
  mov ecx, 0xc0000080
  rdmsr
  or eax, 0x800
  wrmsr
  FORBID level3_page
  LEVEL3
  jmp level3_page
