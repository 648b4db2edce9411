#include "model.h"

#include "devices.h"

static struct answer ask_more(uint32_t leaf, uint32_t subleaf) {
  struct answer answer = {leaf, 0, subleaf, 0};
  __asm__ volatile("cpuid"
                   : "+a"(answer.eax), "=b"(answer.ebx), "+c"(answer.ecx), "=d"(answer.edx));
  return answer;
}

struct answer ask(uint32_t leaf) {
  return ask_more(leaf, 0);
}

bool has_xsave(void) { return (ask(1).ecx >> 26 & 1) != 0; }

bool is_of_amd(void) { return ask(0).ebx == 0x68747541; }  // "Auth"

void ask_all(void) {
  enum { kStateComponents = 0xd };
  const uint32_t extended = 0x80000000, last = ask(extended).eax;
  for (uint32_t leaf = ask(0).eax + 1; leaf-- != 0;) ask(leaf);
  if (has_xsave()) ask_more(kStateComponents, 1);  // XSAVEOPT
  // A processor without extended leaves answers with something of the others.
  for (uint32_t leaf = extended; last >= extended && leaf <= last; ++leaf) ask(leaf);
}

void enable_xsave(void) {
  enum { kXsave = 1 << 18, kX87AndSse = 3 };
  if (!has_xsave()) return;
  set_cr4(cr4() | kXsave);
  __asm__ volatile("xsetbv" : : "c"(0), "a"(kX87AndSse), "d"(0));
}
