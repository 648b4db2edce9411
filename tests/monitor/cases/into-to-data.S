// INTO through a gate to a data segment.
// expected: match
#include "start.inc"
  GATE 4, done, DATA0
  mov al, 0x5a
  out 0x80, al
  mov al, 0x7f
  add al, 1
  into
  jmp done
