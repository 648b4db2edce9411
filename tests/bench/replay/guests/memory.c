/* At least every other instruction touches memory: lists, sorting, copying, a matrix. */
#include "start.h"
#ifndef ROUNDS
#define ROUNDS 100 /* a slow tracer takes fewer */
#endif

struct node {
  struct node* next;
  unsigned key, value;
};
static struct node nodes[4096];
static struct node* buckets[512];
static unsigned numbers[4096];
static unsigned char from[8192], to[8192];
static int a[32][32], b[32][32], c[32][32];
volatile unsigned result;

static unsigned seed = 1;
static unsigned random(void) { return seed = seed * 1103515245u + 12345u; }

static void hash_table(void) {
  for (unsigned i = 0; i < 512; ++i) buckets[i] = 0;
  for (unsigned i = 0; i < 4096; ++i) {
    struct node* n = &nodes[i];
    n->key = random();
    n->value = i;
    n->next = buckets[n->key >> 16 & 511];
    buckets[n->key >> 16 & 511] = n;
  }
  for (unsigned i = 0; i < 4096; ++i) {
    const unsigned key = nodes[i * 7 & 4095].key;
    for (struct node* n = buckets[key >> 16 & 511]; n; n = n->next) {
      if (n->key == key) {
        result += n->value;
        break;
      }
    }
  }
}

static void sort(unsigned* v, int low, int high) {
  while (low < high) {
    const unsigned pivot = v[(low + high) / 2];
    int i = low, j = high;
    while (i <= j) {
      while (v[i] < pivot) ++i;
      while (v[j] > pivot) --j;
      if (i <= j) {
        const unsigned t = v[i];
        v[i++] = v[j];
        v[j--] = t;
      }
    }
    sort(v, low, j);
    low = i;
  }
}

static void multiply(void) {
  for (int i = 0; i < 32; ++i) {
    for (int j = 0; j < 32; ++j) {
      int sum = 0;
      for (int k = 0; k < 32; ++k) sum += a[i][k] * b[k][j];
      c[i][j] = sum;
    }
  }
}

void run(void) {
  for (unsigned round = 0; round < ROUNDS; ++round) {
    hash_table();
    for (unsigned i = 0; i < 4096; ++i) numbers[i] = random();
    sort(numbers, 0, 4095);
    for (unsigned i = 0; i < 8; ++i) memcpy(to, from, sizeof to);
    multiply();
  }
  result += numbers[17] + (unsigned)c[3][4];
}
