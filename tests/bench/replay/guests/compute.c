/* Mostly arithmetic: a sieve, a hash over text, Fibonacci numbers. */
#include "start.h"
#ifndef ROUNDS
#define ROUNDS 120 /* a slow tracer takes fewer */
#endif

static unsigned char composite[65536];
static char text[4096];
volatile unsigned result;

static unsigned sieve(void) {
  unsigned count = 0;
  memset(composite, 0, sizeof composite);
  for (unsigned i = 2; i < sizeof composite; ++i) {
    if (composite[i]) continue;
    ++count;
    for (unsigned j = i + i; j < sizeof composite; j += i) composite[j] = 1;
  }
  return count;
}

static unsigned hash(unsigned h) {
  for (unsigned i = 0; i < sizeof text; ++i) h = (h ^ (unsigned char)text[i]) * 16777619u;
  return h;
}

static unsigned fibonacci(unsigned n) {
  unsigned a = 0, b = 1;
  while (n--) {
    const unsigned c = a + b;
    a = b;
    b = c;
  }
  return a;
}

void run(void) {
  for (unsigned i = 0; i < sizeof text; ++i) text[i] = (char)(i * 7 + 3);
  for (unsigned round = 0; round < ROUNDS; ++round) {
    result += sieve();
    for (unsigned i = 0; i < 16; ++i) result = hash(result);
    result += fibonacci(30000);
  }
}
