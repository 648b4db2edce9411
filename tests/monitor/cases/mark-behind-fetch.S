// The first store to the page that its own code lies in: the instructions before it in its block are
// fetched by a translation that is not marked as dirty yet.
// expected: match
#include "start.inc"
  mov al, 0x5a
  out 0x80, al
  PAGING
  jmp 1f
1:
  mov [scratch], ebx
  mov edx, 1
  mov ecx, 2
  mov [gdt + SPARE], ecx
  jmp done
