// A timer interrupt through a gate to a data segment.
// expected: match
#include "start.inc"
  GATE 0x20, done, DATA0
  mov al, 0x11
  out 0x20, al
  out 0xa0, al
  mov al, 0x20
  out 0x21, al
  mov al, 0x28
  out 0xa1, al
  mov al, 4
  out 0x21, al
  mov al, 2
  out 0xa1, al
  mov al, 1
  out 0x21, al
  out 0xa1, al
  mov al, 0xfe
  out 0x21, al
  mov al, 0xff
  out 0xa1, al
  mov al, 0x5a
  out 0x80, al
  sti
2:
  nop
  jmp 2b
  jmp done
