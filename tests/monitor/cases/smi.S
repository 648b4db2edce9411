// System management interrupts: in protected mode, with and without paging, at level 3, and in
// virtual-8086 mode; with SMBASE in SMRAM and moved to RAM. SMRAM is opened and closed meanwhile.
// expected: match
// options: -machine pc -vga std
#include "start.inc"
#include "smm.inc"
  mov al, 0x5a
  out 0x80, al
  MANAGE
  xor ebx, ebx
  SMI 1
  inc ebx
  mov [scratch], ebx
  SMI 4
  mov dword ptr [0xa8000], 0x55aa55aa   // the screen's memory
  mov eax, [0xa8000]
  SMI 1
  PAGING
  SMI 1
  add ebx, [scratch]
  SMI 0x20
  SMI 1
  SMI 4
  mov al, 3
  mov edx, 0xb2
  mov esi, offset scratch
  mov ecx, 3
  rep outsb
  mov [scratch + 4], ebx
  mov edx, offset done
  GATE 0x0d, done
  LEVEL3 0x3002
  SMI 1
  SMI 4
  int3
  jmp done
