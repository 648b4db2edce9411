// A single step is put off behind MOV to SS.
// expected: match
#include "start.inc"
  GATE 1, stepped, CODE0, 0xef
  GATE 3, stepped, CODE0, 0xef
  GATE 4, stepped, CODE0, 0xef
  GATE 0x40, stepped, CODE0, 0xef
  mov al, 0x5a
  out 0x80, al
  mov eax, DATA0
  pushfd
  or dword ptr [esp], 0x100
  popfd
  mov ss, eax
  nop
  nop
  jmp done
