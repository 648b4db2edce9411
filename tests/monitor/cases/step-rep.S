// Single steps through REP.
// expected: match
#include "start.inc"
  GATE 1, stepped, CODE0, 0xef
  GATE 3, stepped, CODE0, 0xef
  GATE 4, stepped, CODE0, 0xef
  GATE 0x40, stepped, CODE0, 0xef
  mov al, 0x5a
  out 0x80, al
  mov esi, offset scratch
  mov edi, offset scratch + 64
  mov ecx, 3
  pushfd
  or dword ptr [esp], 0x100
  popfd
  rep movsb
  nop
  rep movsb
  nop
  mov ecx, 1
  rep stosd
  nop
  jmp done
