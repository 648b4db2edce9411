/* What a recorded run fetched, read and wrote, as columns: batches for programs that count in arrays.
   Link with `pkg-config --cflags --libs citcat-c`.

     citcat_references *run = citcat_references_open("boot.citcat", 0, 0, UINT64_MAX);
     uint32_t address[1000]; uint8_t kind[1000];
     citcat_columns columns = {sizeof columns, .address = address, .kind = kind};
     size_t count;
     while ((count = citcat_references_read(run, &columns, 1000)) != 0) ...

   As for citcat.h, different runs may be read in different threads. */
#ifndef CITCAT_REFERENCES_H
#define CITCAT_REFERENCES_H

#include "citcat.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A recorded run whose references are read. */
typedef struct citcat_references citcat_references;

enum citcat_reference_kind {
  CITCAT_FETCH = 0, /**< bytes of an instruction, within one page frame; of a REP once */
  CITCAT_READ = 1,
  CITCAT_WRITE = 2,
  CITCAT_WALK_READ = 3, /**< of page tables by the processor */
  CITCAT_WALK_WRITE = 4,
  CITCAT_SYSTEM_READ = 5, /**< of descriptor tables and task states */
  CITCAT_SYSTEM_WRITE = 6
};

/** Where columns go: arrays of as many rows as are asked for; NULL for those that are not wanted. */
typedef struct citcat_columns {
  size_t size;           /**< of this structure, bytes */
  uint64_t *instruction; /**< instructions completed before the one that it belongs to */
  uint32_t *address;     /**< linear; 0 of page walks and system tables */
  uint32_t *physical;
  uint32_t *process; /**< CR3, which stands for it */
  uint16_t *bytes;
  uint8_t *kind;  /**< enum citcat_reference_kind */
  uint8_t *level; /**< current privilege level, 0 to 3 */
  /** As `address`, of 64 bits; a structure whose `size` ends before it has none. Recordings of processors
      with long mode have addresses that `address` cannot hold, and refuse to be read into it. */
  uint64_t *wide_address;
} citcat_columns;

/** Opens a recording, to read what instructions [from, to) did. `flags`: CITCAT_UNCHECKED or 0. NULL when
    that fails: citcat_references_error(NULL) says why. */
CITCAT_API citcat_references* citcat_references_open(const char* path, unsigned flags, uint64_t from,
                                                     uint64_t to);
/** Reads up to `rows` rows in program order and returns how many: 0 at the end or on an error, which
    citcat_references_error() tells apart. What is not of an instruction that completed is left out. */
CITCAT_API size_t citcat_references_read(citcat_references* run, const citcat_columns* columns,
                                         size_t rows);
/** NULL is allowed. */
CITCAT_API void citcat_references_close(citcat_references* run);
/** The last error of `run`, or with NULL of the last citcat_references_open() of this thread: one line,
    valid until the next call. NULL when there was none. */
CITCAT_API const char* citcat_references_error(const citcat_references* run);

#ifdef __cplusplus
}
#endif

#endif
