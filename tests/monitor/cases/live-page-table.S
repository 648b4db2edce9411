// A page table in use is changed, and nothing is dropped. The emulator drops the page when others take
// its place, walks again, and marks or finds what the table says by then.
// expected: match
#include "start.inc"
  .bss
  .align 4096
other_table:
  .skip 4096
  .text

// Sixteen pages that the emulator's TLB keeps in the place of one, and a TLB of 2048 entries does not,
// through entries of their own.
.macro OTHERS label
  mov ecx, 16
  mov esi, offset \label + 0x400000
1:
  mov al, [esi]
  add esi, 0x800000
  loop 1b
.endm

.macro TELL_ENTRY at=0
  mov eax, [ebx + \at]
  out 0x81, al
.endm

  GATE 14, present
  PAGING
  mov edi, offset other_table
  mov eax, 0x67
  mov ecx, 1024
1:
  stosd
  add eax, 0x1000
  loop 1b
  mov edi, offset directory + 4
  mov eax, offset other_table + 0x67
  mov ecx, 32
  rep stosd
  mov eax, cr3
  mov cr3, eax
  mov dword ptr [scratch], 0x11
  mov dword ptr [scratch + 4096], 0x22
  mov ebx, offset scratch
  shr ebx, 10
  and ebx, 0xffc
  add ebx, offset table
  mov al, 0x5a
  out 0x80, al

  // Not accessed.
  mov eax, [scratch]
  and dword ptr [ebx], ~0x20
  OTHERS scratch
  mov eax, [scratch]
  TELL_ENTRY
  // Not dirty.
  mov [scratch + 4], eax
  and dword ptr [ebx], ~0x60
  OTHERS scratch
  mov [scratch + 4], eax
  TELL_ENTRY
  // The same, while the page is held.
  and dword ptr [ebx], ~0x60
  mov eax, [scratch]
  mov [scratch + 4], eax
  TELL_ENTRY
  // Elsewhere.
  add dword ptr [ebx], 0x1000
  OTHERS scratch
  mov eax, [scratch]
  out 0x81, al
  TELL_ENTRY
  // Not present.
  and dword ptr [ebx], ~1
  OTHERS scratch
  mov eax, [scratch]
  out 0x81, al
  TELL_ENTRY
  // In the middle of a REP.
  and dword ptr [ebx], ~0x20
  mov eax, [scratch + 4096]
  and dword ptr [ebx + 4], ~0x20
  OTHERS scratch
  OTHERS scratch + 4096
  mov esi, offset scratch + 4096 - 8
  mov ecx, 4
  rep lodsd
  TELL_ENTRY
  TELL_ENTRY 4
  jmp done

// The handler of the page fault.
present:
  or dword ptr [ebx], 1
  add esp, 4
  iretd
