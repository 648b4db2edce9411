// A single step over INTO.
// expected: match
#include "start.inc"
  GATE 1, stepped, CODE0, 0xef
  GATE 3, stepped, CODE0, 0xef
  GATE 4, stepped, CODE0, 0xef
  GATE 0x40, stepped, CODE0, 0xef
  mov al, 0x5a
  out 0x80, al
  mov al, 0x7f
  pushfd
  or dword ptr [esp], 0x100
  popfd
  add al, 1
  into
  nop
  xor eax, eax
  into
  nop
  jmp done
