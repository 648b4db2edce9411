// #UD through a gate that is not present.
// expected: match
#include "start.inc"
  GATE 6, done, CODE0, 0x0e
  mov al, 0x5a
  out 0x80, al
  ud2
  jmp done
