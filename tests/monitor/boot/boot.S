// A boot sector and what it loads, for recordings of a PC without an operating system: the BIOS's
// services, interrupts and exceptions through the vector table, 16-bit protected mode and back,
// segments that stay large, the A20 gate, screen memory, ports, NMIs. It writes 5Ah to port 80h when it
// begins and A5h when it is done; the checksum of what it saw goes to port 81h before.
  .code16
  .globl _start

  .set kStack, 0x7c00
  .set kSectors, 8
  .set kBuffer, 0x0600          // where the disk is read again, and strings go
  .set kGate286, 0x8600
  .set kTrap286, 0x8700

_start:
  ljmp $0, $1f
1:
  cli
  xorw %ax, %ax
  movw %ax, %ds
  movw %ax, %es
  movw %ax, %ss
  movw $kStack, %sp
  cld
  sti
  movb %dl, drive
  movw $(0x0200 + kSectors), %ax        // INT 13h: read the rest behind this sector
  movw $0x0002, %cx
  xorb %dh, %dh
  movw $more, %bx
  int $0x13
  jc fail
  jmp more
fail:
  movb $0xee, %al
  outb %al, $0x80
  movb $0xa5, %al
  outb %al, $0x80
2:
  hlt
  jmp 2b
drive: .byte 0
  .org 510
  .word 0xaa55

more:
  movb $0x5a, %al
  outb %al, $0x80
  call services
  call timer
  call strings
  call exceptions
  call single_step
  call far_calls
  call coprocessor
  call screen
  call gate_a20
  call large_segments
  call nonmaskable
  call protected16
  call protected16
  call ports
  movw sum, %ax
  movw $0x81, %dx
  outw %ax, %dx
  movb $0xa5, %al
  outb %al, $0x80
2:
  hlt
  jmp 2b

// add_sum: AX into the checksum
add_sum:
  addw %ax, sum
  rolw $1, sum
  ret

// The BIOS: text, cursor, keyboard status, time of day, memory, equipment, disk parameters.
services:
  movw $0x0003, %ax
  int $0x10
  movw $text, %si
1:
  lodsb
  testb %al, %al
  jz 2f
  movb $0x0e, %ah
  movw $7, %bx
  int $0x10
  jmp 1b
2:
  movb $3, %ah
  xorb %bh, %bh
  int $0x10
  movw %dx, %ax
  call add_sum
  movb $1, %ah
  int $0x16
  xorb %ah, %ah
  int $0x1a
  movb $2, %ah
  int $0x1a
  int $0x12
  call add_sum
  int $0x11
  call add_sum
  movb $0x88, %ah
  int $0x15
  call add_sum
  pushw %es
  movb $8, %ah
  movb drive, %dl
  int $0x13
  popw %es
  movw $0x0201, %ax                     // this sector again, elsewhere
  movw $0x0001, %cx
  xorb %dh, %dh
  movb drive, %dl
  movw $kBuffer, %bx
  int $0x13
  movw kBuffer + 510, %ax
  jmp add_sum

// The timer's interrupt, hooked, while HLT and a loop wait for it.
timer:
  cli
  movw 8 * 4, %ax
  movw %ax, old_timer
  movw 8 * 4 + 2, %ax
  movw %ax, old_timer + 2
  movw $on_timer, 8 * 4
  movw $0, 8 * 4 + 2
  movb $0x34, %al                       // 1193182 Hz / 256
  outb %al, $0x43
  xorb %al, %al
  outb %al, $0x40
  movb $0x01, %al
  outb %al, $0x40
  sti
1:
  hlt
  cmpb $5, ticks
  jb 1b
2:
  movw $200, %cx                        // interrupted in the middle of strings
  movw $kBuffer, %si
  movw $kBuffer + 0x100, %di
  rep movsb
  cmpb $25, ticks
  jb 2b
  cli
  movw old_timer, %ax
  movw %ax, 8 * 4
  movw old_timer + 2, %ax
  movw %ax, 8 * 4 + 2
  sti
  ret
on_timer:
  incb %cs:ticks
  pushf
  lcall *%cs:old_timer
  iret

strings:
  movw $kBuffer, %di
  movw $300, %cx
  movw $0x1234, %ax
  rep stosw
  movw $kBuffer, %si
  movw $kBuffer + 3, %di
  movw $77, %cx
  rep movsw
  movw $text, %si
  movw $kBuffer, %di
  movw $20, %cx
  rep movsb
  movw $text, %si
  movw $kBuffer, %di
  movw $30, %cx
  repe cmpsb
  movw %cx, %ax
  call add_sum
  movw $text, %di
  movb $'o', %al
  movw $30, %cx
  repne scasb
  movw %cx, %ax
  call add_sum
  movw $kBuffer + 1, %si
  movw $9, %cx
  rep lodsl
  call add_sum
  movl $5, %ecx                         // with 32-bit addresses
  movl $kBuffer, %esi
  movl $kBuffer + 0x40, %edi
  addr32 rep movsl
  std
  movw $kBuffer + 20, %si
  movw $kBuffer + 41, %di
  movw $11, %cx
  rep movsw
  cld
  ret

// set_vector: CX is the handler of interrupt BX
set_vector:
  shlw $2, %bx
  movw %cx, (%bx)
  movw $0, 2(%bx)
  ret

// Division, overflow, bounds, undefined opcode, INT3 and INT n of an own vector.
exceptions:
  movw $0, %bx
  movw $on_divide, %cx
  call set_vector
  movw $3, %bx
  movw $on_int, %cx
  call set_vector
  movw $4, %bx
  call set_vector
  movw $5, %bx
  movw $on_bound, %cx
  call set_vector
  movw $6, %bx
  movw $on_undefined, %cx
  call set_vector
  movw $0x60, %bx
  movw $on_int, %cx
  call set_vector
  movw $1000, %ax
  xorb %cl, %cl
  divb %cl
  int3
  movb $0x7f, %al
  addb $1, %al
  into
  addb $1, %al
  into
  int $0x60
  movw $50, %ax
  boundw %ax, limits
  ud2
  ret
on_divide:
  pushw %bp
  movw %sp, %bp
  addw $2, 2(%bp)
  popw %bp
on_int:
  incb %cs:faults
  iret
on_bound:
  pushw %bp
  movw %sp, %bp
  addw $4, 2(%bp)
  popw %bp
  iretw
on_undefined:
  pushw %bp
  movw %sp, %bp
  addw $2, 2(%bp)
  popw %bp
  iret

// Single steps over plain code, a string and a software interrupt.
single_step:
  movw $1, %bx
  movw $on_step, %cx
  call set_vector
  pushf
  popw %ax
  orw $0x100, %ax
  pushw %ax
  popf
  nop
  addw $3, %dx
  movw $4, %cx
  movw $kBuffer, %di
  rep stosb
  int $0x60
  nop
  pushf
  popw %ax
  andw $~0x100, %ax
  pushw %ax
  popf
  ret
on_step:
  incb %cs:steps
  iret

// Far calls, jumps and returns of both operand sizes, and IRET with a frame of dwords.
far_calls:
  lcall $0x0010, $far16 - 0x100
  lcall *far_pointer
  pushl $0
  popl %eax
  pushfl
  pushl $0
  pushl $1f
  iretl
1:
  lcalll $0, $far32
  pushl %fs
  popl %gs
  pushw $2f
  ljmp *far_pointer + 4
2:
  les far_pointer, %di
  movw %es, %ax
  call add_sum
  xorw %ax, %ax
  movw %ax, %es
  pusha
  popa
  pushal
  popal
  enter $8, $2
  leave
  ret
far16:
  movw %cs, %ax
  addw %ax, %cs:sum
  lret
far32:
  movw %cs, %ax
  addw %ax, %cs:sum
  lretl
near_back:
  ret

// x87 images in real mode hold linear addresses.
coprocessor:
  fninit
  fld1
  filds limits
  faddp
  fstpl kBuffer
  fnstenv kBuffer + 16
  data32 fnsave kBuffer + 64
  data32 frstor kBuffer + 64
  fldenv kBuffer + 16
  fninit
  ret

// Text memory is a device: written, read back, moved.
screen:
  pushw %ds
  pushw %es
  movw $0xb800, %ax
  movw %ax, %es
  movw %ax, %ds
  xorw %di, %di
  movw $0x0741, %ax
  movw $80, %cx
  rep stosw
  xorw %si, %si
  movw $160, %di
  movw $40, %cx
  rep movsw
  movb $'!', 4
  incb 4
  xorw $0x0101, 6
  movw 4, %ax
  popw %es
  popw %ds
  call add_sum
  movw $0xf000, %ax                     // the BIOS's own memory may not be written to
  movw %ax, %fs
  movw %fs:0xfff5, %ax
  movw $0x5555, %fs:0xfff5
  addw %fs:0xfff5, %ax
  call add_sum
  ret

// 0000:0500 and FFFF:0510 are one address while the gate is closed.
gate_a20:
  movw $0xffff, %ax
  movw %ax, %fs
  movw $0x1111, 0x500
  movw $0x2222, %fs:0x510
  inb $0x92, %al
  andb $0xfd, %al
  outb %al, $0x92
  movw %fs:0x510, %ax
  movw $0x3333, %fs:0x510
  addw 0x500, %ax
  call add_sum
  inb $0x92, %al
  orb $2, %al
  outb %al, $0x92
  movw %fs:0x510, %ax
  addw 0x500, %ax
  call add_sum
  movw $0x2400, %ax
  int $0x15
  movw %fs:0x510, %ax
  call add_sum
  movw $0x2401, %ax
  int $0x15
  ret

// Protected mode for a moment leaves FS with 4 GiB and a base of its own.
large_segments:
  cli
  lgdt table_pointer
  movl %cr0, %eax
  orb $1, %al
  movl %eax, %cr0
  jmp 1f
1:
  movw $0x18, %bx
  movw %bx, %fs
  movw $0x20, %bx
  movw %bx, %gs
  andb $0xfe, %al
  movl %eax, %cr0
  sti
  movl $0x00200000, %edi
  movl $0x12345678, %fs:(%edi)
  addl $1, %fs:(%edi)
  movl %fs:(%edi), %eax
  call add_sum
  movl %gs:text_at_base, %eax
  call add_sum
  movw $0x0060, %bx
  int $0x60
  movl $6, %ecx
  movl $0x00200000, %esi
  movw %fs:(%esi), %ax
  fs addr32 rep lodsb
  xorw %ax, %ax
  movw %ax, %gs
  ret

// NMIs: one that the local APIC is told to send, by the segment of 4 GiB, and those that it makes of
// the timer's interrupts (Intel SDM vol. 3, 10.5.1), in strings, behind jumps and calls, in HLT.
nonmaskable:
  cli
  movw $on_nmi, 2 * 4
  movw $0, 2 * 4 + 2
  movb $0, ticks
  movl $0xfee00300, %edi                // the interrupt command: NMI, to itself
  movl $0x00044400, %fs:(%edi)
  addw $1, %ax
  movl $0x00044400, %fs:(%edi)
  jmp 1f
1:
  movl $0xfee00350, %edi                // the interrupt controller's line: NMI
  movl %fs:(%edi), %ebx
  movl $0x400, %fs:(%edi)
  inb $0x21, %al
  movb %al, %ch
  movb $0xfe, %al
  outb %al, $0x21
  movb $0x34, %al
  outb %al, $0x43
  xorb %al, %al
  outb %al, $0x40
  movb $0x01, %al
  outb %al, $0x40
  pushw %cx
2:
  movw $200, %cx
  movw $kBuffer, %si
  movw $kBuffer + 0x100, %di
  rep movsb
  call near_back
  lcall $0, $far_back
  cmpb $30, ticks
  jb 2b
3:
  hlt
  cmpb $34, ticks
  jb 3b
  popw %cx
  movl $0xfee00350, %edi
  movl %ebx, %fs:(%edi)
  movb %ch, %al
  outb %al, $0x21
  sti
  ret
far_back:
  lret
on_nmi:
  pushw %ax
  movb $0x0c, %al                       // poll: takes the place of the acknowledge
  outb %al, $0x20
  inb $0x20, %al
  movb $0x20, %al
  outb %al, $0x20
  popw %ax
  incb %cs:ticks
  iret

// 16-bit protected mode by LMSW: gates of the 286 for INT n, an exception and the timer, a task
// register, a local table; and back by MOV.
protected16:
  cli
  sidt real_idt
  lgdt table_pointer
  lidt gates_pointer
  smsw %ax
  orb $1, %al
  lmsw %ax
  ljmp $0x08, $1f
1:
  movw $0x10, %ax
  movw %ax, %ds
  movw %ax, %es
  movw %ax, %ss
  movw $0x28, %ax
  lldt %ax
  movw $0x30, %ax
  ltr %ax
  movw $0x04, %ax
  movw %ax, %es
  movw %es:2, %ax
  call add_sum
  movw $0x10, %ax
  movw %ax, %es
  int $0x20
  ud2
  lcall $0x08, $protected_far
  lcall $0x38, $0
  movb $0, ticks
  movb $0x11, %al                       // the interrupt controller's vectors behind the exceptions'
  outb %al, $0x20
  movb $0x28, %al
  outb %al, $0x21
  movb $4, %al
  outb %al, $0x21
  movb $1, %al
  outb %al, $0x21
  movb $0xfe, %al
  outb %al, $0x21
  sti
2:
  movw $100, %cx
  movw $kBuffer, %si
  movw $kBuffer + 0x100, %di
  rep movsb
  cmpb $6, ticks
  jb 2b
  cli
  movb $0x11, %al
  outb %al, $0x20
  movb $8, %al
  outb %al, $0x21
  movb $4, %al
  outb %al, $0x21
  movb $1, %al
  outb %al, $0x21
  movb $0xf8, %al
  outb %al, $0x21
  lidt real_idt
  movb $0x81, table + 0x35              // the task is not busy
  movl %cr0, %eax
  andb $0xfe, %al
  movl %eax, %cr0
  ljmp $0, $3f
3:
  xorw %ax, %ax
  movw %ax, %ds
  movw %ax, %es
  movw %ax, %ss
  sti
  int $0x60
  ret
protected_far:
  incb steps
  lret
protected_int:
  incb faults
  iret
protected_undefined:
  pushw %bp
  movw %sp, %bp
  addw $2, 2(%bp)
  popw %bp
  iret
protected_timer:
  pushw %ax
  incb ticks
  movb $0x20, %al
  outb %al, $0x20
  popw %ax
  iret

// Strings to and from ports: the disk's identification by REP INSW, bytes out by REP OUTSB.
ports:
  cli
  movw $0x3f6, %dx
  movb $2, %al
  outb %al, %dx
  movw $0x1f6, %dx
  movb $0xa0, %al
  outb %al, %dx
  movw $0x1f7, %dx
  movb $0xec, %al
  outb %al, %dx
1:
  inb %dx, %al
  testb $0x80, %al
  jnz 1b
  testb $8, %al
  jz 1b
  movw $kBuffer, %di
  movw $0x1f0, %dx
  movw $256, %cx
  rep insw
  movw $0x3f6, %dx
  xorb %al, %al
  outb %al, %dx
  movw kBuffer, %ax
  call add_sum
  movw $text, %si
  movw $0x82, %dx
  movw $12, %cx
  rep outsb
  sti
  ret

text: .asciz "Real mode and 16-bit protected mode, recorded.\r\n"
sum: .word 0
ticks: .byte 0
faults: .byte 0
steps: .byte 0
  .balign 4
limits: .word 10, 20
old_timer: .long 0
far_pointer: .word far16 - 0x100, 0x10, near_back, 0
real_idt: .word 0x3ff
  .long 0
table_pointer: .word table_end - table - 1
  .long table
gates_pointer: .word gates_end - gates - 1
  .long gates

  .balign 8
table:
  .quad 0
  .word 0xffff, 0, 0x9a00, 0            // 08 code of 16 bits
  .word 0xffff, 0, 0x9200, 0            // 10 data
  .word 0xffff, 0, 0x9200, 0x8f         // 18 4 GiB
  .word 0xffff, 0x1000, 0x9200, 0       // 20 data at 1000h
  .word 7, local_table, 0x8200, 0       // 28 the local table
  .word 43, tss, 0x8100, 0              // 30 a task segment of the 286
  .word protected_far, 8, 0x8400, 0     // 38 a call gate of the 286
table_end:
  .set text_at_base, text - 0x1000
local_table:
  .word 0x0fff, text, 0x9200, 0
tss: .fill 44, 1, 0
gates:
  .rept 6
  .word 0, 0, 0, 0
  .endr
  .word protected_undefined, 8, kTrap286, 0
  .rept 0x20 - 7
  .word 0, 0, 0, 0
  .endr
  .word protected_int, 8, kTrap286, 0
  .rept 7
  .word 0, 0, 0, 0
  .endr
  .word protected_timer, 8, kGate286, 0
gates_end:
  .org 512 * (kSectors + 1)
