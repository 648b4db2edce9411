// Below the limit of a segment that expands down.
// expected: 4 bytes at 00000ffc were written through FS
#include "start.inc"
  ENTRY SPARE, 0x00000fff, 0x00409700
  mov al, 0x5a
  out 0x80, al
  mov eax, SPARE
  mov fs, eax
  mov fs:[0x1000], eax
  mov fs:[0xffc], eax
  jmp done
