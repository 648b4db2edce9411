// Segments that protected mode has left large, in real mode: behind interrupts and loads of others.
// expected: match
#include "start.inc"
  REAL
  mov eax, cr0
  or al, 1
  mov cr0, eax
  mov bx, 0x10
  mov fs, bx
  and al, 0xfe
  mov cr0, eax
  mov ebx, 0x120000
  mov fs:[ebx], eax
  int 3
  xor ax, ax
  mov ds, ax
  mov eax, fs:[ebx]
  mov ax, 0x10
  mov fs, ax
  mov eax, fs:[ebx]
  REAL_END
