// JMP through a gate with a null selector.
// expected: match
#include "start.inc"
  ENTRY SPARE, 0, 0x00108c00
  mov al, 0x5a
  out 0x80, al
  FAR_JMP SPARE
  jmp done
