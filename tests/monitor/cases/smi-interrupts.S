// System management interrupts while the timer interrupts, and out of HLT: the timer's own, which
// the local APIC makes SMIs.
// expected: match
// options: -machine pc -vga std
#include "start.inc"
#include "smm.inc"
  .set APIC, 0xfee00000
  GATE 0x20, ticked
  MANAGE
  CONTROLLERS
  mov al, 0x34   // the timer: every 2000 ticks
  out 0x43, al
  mov al, 0xd0
  out 0x40, al
  mov al, 7
  out 0x40, al
  mov al, 0x5a
  out 0x80, al
  sti
  mov ecx, 40
1:
  SMI 1
  cmp ecx, 20
  jne 2f
  SMI 0x20
2:
  loop 1b
  mov dword ptr [APIC + 0x350], 0x200   // LINT0: an SMI
  mov ecx, 5
1:
  hlt
  cmp dword ptr [managed], 60
  jb 1b
  mov edi, offset scratch   // in REP too
  mov ecx, 4096
  cld
1:
  mov edi, offset scratch
  mov ecx, 2000
  rep stosd
  cmp dword ptr [managed], 80
  jb 1b
  cli
1:
  cmp dword ptr [managed], 90
  jb 1b
  jmp done
ticked:
  push eax
  inc dword ptr [scratch + 8]
  mov al, 0x20
  out 0x20, al
  pop eax
  iretd
