// Where both processors begin: the first one by a multiboot loader (Multiboot Specification 0.6.96,
// 3.1 and 3.2) with flat segments of 32 bits, the second one in real mode, by a SIPI.

#define MULTIBOOT_MAGIC 0x1badb002
#define TRAMPOLINE 0x8000

  .section .multiboot, "a"
  .align 4
  .long MULTIBOOT_MAGIC, 0, -MULTIBOOT_MAGIC

  .text
  .globl start
start:
  cli
  movl $stack_of_first, %esp
  movl $trampoline, %esi
  movl $TRAMPOLINE, %edi
  movl $trampoline_end - trampoline, %ecx
  rep movsb
  lgdt table
  ljmp $8, $1f
1:
  movl $16, %eax
  movl %eax, %ds
  movl %eax, %es
  movl %eax, %fs
  movl %eax, %gs
  movl %eax, %ss
  pushl $TRAMPOLINE >> 12
  call first

  .code16
trampoline:
  cli
  xorw %ax, %ax
  movw %ax, %ds
  lgdtl TRAMPOLINE + table - trampoline
  movl %cr0, %eax
  andl $0x9fffffff, %eax  // the caches are off behind INIT
  orl $1, %eax
  movl %eax, %cr0
  ljmpl $8, $TRAMPOLINE + 1f - trampoline
  .code32
1:
  movl $16, %eax
  movl %eax, %ds
  movl %eax, %es
  movl %eax, %ss
  movl $stack_of_second, %esp
  movl $second, %eax
  call *%eax
table:
  .word 23
  .long TRAMPOLINE + descriptors - trampoline
  .align 8
descriptors:
  .quad 0
  .quad 0x00cf9b000000ffff
  .quad 0x00cf93000000ffff
trampoline_end:

  .bss
  .align 64
  .skip 1024
stack_of_first:
  .skip 1024
stack_of_second:

  .section .note.GNU-stack, "", @progbits
