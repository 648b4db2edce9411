// System management interrupts of Q35, whose SMRAM is moved to the end of RAM; a program outside reads
// FFh there, and what it stores is lost.
// expected: match
// options: -machine q35 -vga std
  .set Q35, 1
  .set MOVED, 0xf00000
#include "start.inc"
#include "smm.inc"
  mov al, 0x5a
  out 0x80, al
  MANAGE
  BRIDGE 0x9e, 1   // the last MiB of RAM
  SMI 1
  SMI 0x20
  SMI 1
  mov eax, [MOVED + 0x8000]
  mov [scratch], eax
  mov dword ptr [MOVED + 0x8004], 0x12345678
  mov eax, [MOVED + 0xfff8]
  mov [scratch + 4], eax
  SMI 4
  mov eax, [MOVED + 0x8000]
  mov eax, [MOVED + 0x8004]
  mov [scratch], eax
  SMI 1
  PAGING
  SMI 4
  jmp done
