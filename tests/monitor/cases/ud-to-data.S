// #UD through a gate to a data segment.
// expected: match
#include "start.inc"
  GATE 6, done, DATA0
  mov al, 0x5a
  out 0x80, al
  ud2
  jmp done
