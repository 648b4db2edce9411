/* Traces and references as columns, by the Arrow C data interface and the Arrow C stream interface.
   Link with `pkg-config --cflags --libs citcat-c`.

     struct ArrowArrayStream stream;
     if (citcat_references_arrow("boot.citcat", 0, 0, UINT64_MAX, 65536, &stream) != 0) ...citcat_arrow_error()
     ... hand it to a reader of Arrow, or: stream.get_next(&stream, &batch) ... batch.release(&batch) ...
     stream.release(&stream);

   The structures that are handed out own their memory, and may be read and released in any thread, even
   after the library's other objects are gone. Sources: Apache Arrow, "The Arrow C data interface" and "The Arrow C stream
   interface". */
#ifndef CITCAT_ARROW_H
#define CITCAT_ARROW_H

#include "citcat_references.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The three structures as Arrow publishes them, with the guards that it demands. */
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

struct ArrowSchema {
  const char *format, *name, *metadata;
  int64_t flags, n_children;
  struct ArrowSchema **children, *dictionary;
  void (*release)(struct ArrowSchema*); /**< NULL: released */
  void* private_data;
};

struct ArrowArray {
  int64_t length, null_count, offset, n_buffers, n_children;
  const void** buffers;
  struct ArrowArray **children, *dictionary;
  void (*release)(struct ArrowArray*); /**< NULL: released */
  void* private_data;
};

#endif

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream*, struct ArrowSchema* out);
  int (*get_next)(struct ArrowArrayStream*, struct ArrowArray* out); /**< released at the end */
  const char* (*get_last_error)(struct ArrowArrayStream*);
  void (*release)(struct ArrowArrayStream*); /**< NULL: released */
  void* private_data;
};

#endif

/** The references of instructions [from, to), in batches of up to `rows` rows: the columns of citcat_columns,
    addresses with 64 bits. 0, or -1 on an error: citcat_arrow_error() says why. If the replay differs from the
    recording's evidence, get_next() returns an error after the last row that is certain. */
CITCAT_API int citcat_references_arrow(const char* path, unsigned flags, uint64_t from, uint64_t to, size_t rows,
                                       struct ArrowArrayStream* out);
/** The same for a trace, from its beginning: the fields of citcat_wide_record; `bytes` as binary, `data` as a list
    of numbers, both numbers of an event. `flags` combines enum citcat_flags. */
CITCAT_API int citcat_trace_arrow(const char* path, unsigned flags, size_t rows, struct ArrowArrayStream* out);

enum citcat_arrow_table { CITCAT_ARROW_REFERENCES, CITCAT_ARROW_TRACE };

/** The schema of all batches of a table. */
CITCAT_API int citcat_arrow_schema(enum citcat_arrow_table table, struct ArrowSchema* out);
/** A copy of `rows` rows that citcat_references_read() read into all `columns` except `address`. */
CITCAT_API int citcat_columns_arrow(const citcat_columns* columns, size_t rows, struct ArrowArray* out);
/** The last error of the functions above in this thread. One line, valid until the next call; NULL if there was
    no error. */
CITCAT_API const char* citcat_arrow_error(void);

/** For Python modules: a structure of zeros, to be put in a capsule of its type's name
    ("arrow_schema", "arrow_array", "arrow_array_stream"), and that capsule's destructor, which releases and frees
    it. `get_pointer` is PyCapsule_GetPointer(), which the library is not linked with. NULL for any other name, and
    if there is no memory. Source: Apache Arrow, "The Arrow PyCapsule Interface". */
CITCAT_API void* citcat_arrow_new(const char* name);
CITCAT_API void (*citcat_arrow_destructor(const char* name,
                                          void* (*get_pointer)(void* capsule, const char* name)))(void* capsule);

#ifdef __cplusplus
}
#endif

#endif
