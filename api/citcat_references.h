/* The fetches, reads and writes of a recorded run as columns, in batches.
   Link with `pkg-config --cflags --libs citcat-c`.

     citcat_references *run = citcat_references_open("boot.citcat", 0, 0, UINT64_MAX);
     uint32_t address[1000]; uint8_t kind[1000];
     citcat_columns columns = {sizeof columns, .address = address, .kind = kind};
     size_t count;
     while ((count = citcat_references_read(run, &columns, 1000)) != 0) ...

   Different runs may be read in different threads, as for citcat.h. */
#ifndef CITCAT_REFERENCES_H
#define CITCAT_REFERENCES_H

#include "citcat.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A recorded run that is being read. */
typedef struct citcat_references citcat_references;

enum citcat_reference_kind {
  CITCAT_FETCH = 0, /**< bytes of an instruction, within one page frame; once for a REP */
  CITCAT_READ = 1,
  CITCAT_WRITE = 2,
  CITCAT_WALK_READ = 3, /**< page tables, read by the processor */
  CITCAT_WALK_WRITE = 4,
  CITCAT_SYSTEM_READ = 5, /**< descriptor tables and task state segments */
  CITCAT_SYSTEM_WRITE = 6
};

/** The arrays that receive the columns, each with room for all rows; NULL for columns that you do not need. */
typedef struct citcat_columns {
  size_t size;           /**< bytes of this structure */
  uint64_t *instruction; /**< instructions completed before the one that made the reference */
  uint32_t *address;     /**< linear; 0 for page walks and system tables */
  uint32_t *physical;
  uint32_t *process; /**< its CR3 */
  uint16_t *bytes;
  uint8_t *kind;  /**< enum citcat_reference_kind */
  uint8_t *level; /**< current privilege level, 0 to 3 */
  /** As `address`, but of 64 bits; absent if `size` ends before it. Recordings of processors with long mode
      need this column: reading them into `address` is an error. */
  uint64_t *wide_address;
  /** As `physical` and `process`, but of 64 bits; absent if `size` ends before them. Recordings that use memory
      beyond 4 GiB need these: reading its addresses into the others is an error. */
  uint64_t *wide_physical, *wide_process;
} citcat_columns;

/** Opens a recording to read the references of instructions [from, to). `flags`: CITCAT_UNCHECKED or 0. NULL
    on an error: citcat_references_error(NULL) says why. */
CITCAT_API citcat_references* citcat_references_open(const char* path, unsigned flags, uint64_t from,
                                                     uint64_t to);
/** Reads up to `rows` rows in program order and returns their number: 0 at the end, or on an error, when
    citcat_references_error() is not NULL. Accesses that belong to no completed instruction are left out. */
CITCAT_API size_t citcat_references_read(citcat_references* run, const citcat_columns* columns,
                                         size_t rows);
/** NULL is allowed. */
CITCAT_API void citcat_references_close(citcat_references* run);
/** The last error of `run`; with NULL, of the last citcat_references_open() in this thread. One line, valid
    until the next call; NULL if there was no error. */
CITCAT_API const char* citcat_references_error(const citcat_references* run);

#ifdef __cplusplus
}
#endif

#endif
