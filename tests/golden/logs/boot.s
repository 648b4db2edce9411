.code16
.globl _start
_start:
  cli
  xor %ax,%ax
  mov %ax,%ds
  mov %ax,%es
  mov %ax,%ss
  mov $0x7c00,%sp
  mov $0x500,%di
  mov $20,%cx
  cld
  rep stosb
  mov $5,%cx
1: call f
  loop 1b
  movw $h,0x80
  movw %cs,0x82
  int $0x20
  mov $3,%al
  out %al,$0xf4
  hlt
f: push %cx
  inc %bx
  pop %cx
  ret
h: inc %dx
  iret
.org 510
.word 0xaa55
