// A single step over port accesses.
// expected: match
#include "start.inc"
  GATE 1, stepped, CODE0, 0xef
  GATE 3, stepped, CODE0, 0xef
  GATE 4, stepped, CODE0, 0xef
  GATE 0x40, stepped, CODE0, 0xef
  mov al, 0x5a
  out 0x80, al
  pushfd
  or dword ptr [esp], 0x100
  popfd
  out 0x81, al
  in al, 0x64
  nop
  jmp done
