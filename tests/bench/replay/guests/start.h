/* A guest program: flat 32-bit code at 1 MiB, stack below it, ends with HLT. */
__attribute__((noreturn, section(".text.start"))) void _start(void);
void run(void);
void _start(void) {
  run();
  for (;;) __asm__ volatile("hlt");
}
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
