// INT n through a gate to a task segment.
// expected: match
#include "start.inc"
  GATE 0x40, done, TASK
  mov al, 0x5a
  out 0x80, al
  int 0x40
  jmp done
