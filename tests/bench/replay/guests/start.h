/* A guest program: flat 32-bit code at 1 MiB, stack below it, ends with HLT. For other tracers the
   same program is also a Linux process (GUEST_LINUX) and a multiboot kernel that ends by QEMU's
   isa-debug-exit device at port F4h (GUEST_MULTIBOOT). */
__attribute__((noreturn, section(".text.start"))) void _start(void);
void run(void);
#if defined(GUEST_LINUX)
void _start(void) {
  run();
  for (;;) __asm__ volatile("int $0x80" : : "a"(1), "b"(0)); /* exit(0) */
}
#elif defined(GUEST_MULTIBOOT)
/* Multiboot specification 0.6.96, 3.1.1: magic, flags, checksum. */
__attribute__((section(".text.multiboot"), used)) static const unsigned multiboot[] = {
    0x1badb002, 0, -0x1badb002u};
void _start(void) {
  __asm__ volatile("mov $0x90000, %esp\n\tcall run\n\tout %al, $0xf4\n\thlt");
  for (;;) {
  }
}
#else
void _start(void) {
  run();
  for (;;) __asm__ volatile("hlt");
}
#endif
void* memcpy(void* to, const void* from, unsigned n) {
  unsigned char* t = to;
  const unsigned char* f = from;
  while (n--) *t++ = *f++;
  return to;
}
void* memset(void* to, int value, unsigned n) {
  unsigned char* t = to;
  while (n--) *t++ = (unsigned char)value;
  return to;
}
