/* Reading instruction traces from C: a recording or a KT file, record by record, as if the trace
   were stored. Link with `pkg-config --cflags --libs citcat-c`.

     citcat_trace *trace = citcat_open("boot.citcat", 0);
     if (!trace) { fprintf(stderr, "%s\n", citcat_error(NULL)); exit(1); }
     citcat_record record;
     while (citcat_next(trace, &record) > 0) simulate(&record);
     if (citcat_error(trace)) fprintf(stderr, "%s\n", citcat_error(trace));
     citcat_close(trace);

   Threads: any number of threads may open, read, seek and close traces at the same time, of the same
   recording too. One trace is one thread's at a time: what two of them do with it must not overlap.
   The text of citcat_error(NULL) is the calling thread's own. While a trace is compared with evidence
   a thread of the library's own reads that; it takes no signals, and ends with the trace.

   The process stays the caller's. The library installs no signal handler and ends nothing: without
   memory a call fails, though Unicorn may then say so on the standard error output, and its memory
   is not given back. NULL where a trace or a record is expected is an error too. After fork() the
   child may open traces of its own. */
#ifndef CITCAT_H
#define CITCAT_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define CITCAT_API __attribute__((visibility("default")))
#else
#define CITCAT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** A trace that is open. */
typedef struct citcat_trace citcat_trace;

enum citcat_kind {
  CITCAT_INSTRUCTION = 0, /**< an instruction, or one iteration of a REP, was executed */
  CITCAT_PROCESS = 1,     /**< what follows runs in address space `pid` */
  CITCAT_TRANSLATION = 2, /**< the page at `page` lies in page frame `frame` */
  CITCAT_EVENT = 3        /**< something happened between instructions: `event` */
};

/** What happened; the fields of the record that tell it. */
enum citcat_event {
  CITCAT_EXCEPTION = 1, /**< `address`: vector; `data[0]`: error code, 0 where it has none */
  CITCAT_SOFTWARE_INTERRUPT = 2, /**< `address`: vector */
  CITCAT_INTERRUPT = 3,          /**< `address`: vector */
  CITCAT_NMI = 4,
  CITCAT_SMI = 5,
  CITCAT_HALTED = 6,
  CITCAT_SHUTDOWN = 7,
  CITCAT_PORT_READ = 8,      /**< `address`: port; `data[0]`: value; `data[1]`: bytes */
  CITCAT_PORT_WRITE = 9,     /**< the same */
  CITCAT_EXTERNAL_WRITE = 10 /**< `address`: physical, another bus master's; `data[1]`: bytes */
};

/** One record of the trace (docs/formats/kt.md says which addresses an instruction has). */
typedef struct citcat_record {
  uint64_t instruction; /**< instructions completed before this one, a whole REP counting as one; of
                           a record of another kind, before the one it precedes. Where `bits` is 0
                           it counts from the file's first record and is derived from the records */
  uint32_t iteration;   /**< iterations of the REP completed before this one */
  uint32_t address;     /**< linear address of the instruction */
  uint32_t data[2];     /**< linear addresses it used, `data_count` of them */
  uint32_t pid, page, frame;
  uint8_t kind;       /**< enum citcat_kind */
  uint8_t length;     /**< bytes of the instruction, 1 to 15 */
  uint8_t data_count; /**< 0 to 2 */
  uint8_t bytes[15];  /**< the instruction, `length` of them */
  uint8_t bits;       /**< default size of its code segment, 16 or 32; 0: the file does not tell */
  uint8_t event;      /**< enum citcat_event, of an EVENT; else 0 */
} citcat_record;

/** The same with addresses of 64 bits, as processors with long mode have. */
typedef struct citcat_wide_record {
  uint64_t instruction; /**< as in citcat_record, as the others are */
  uint64_t address;
  uint64_t data[2];
  uint64_t page;
  uint32_t iteration;
  uint32_t pid, frame;
  uint8_t kind;
  uint8_t length;
  uint8_t data_count;
  uint8_t bytes[15];
  uint8_t bits; /**< 64 in 64-bit mode, too */
  uint8_t event;
} citcat_wide_record;

enum citcat_flags {
  CITCAT_PROCESSES = 1, /**< of a recording: PROCESS and TRANSLATION records too, at the beginning
                             and after citcat_seek() those of then */
  CITCAT_UNCHECKED = 2, /**< of a recording: do not compare the replay with the evidence */
  CITCAT_EVENTS = 4,    /**< EVENT records too, of a recording, `.kt.zst` or `.ktz` */
  CITCAT_WIDE = 8       /**< citcat_read_wide() is going to read: traces of 64 bits may be opened */
};

/** Opens a recording or a KT file (plain, compressed or stored). `flags` are of enum citcat_flags.
    NULL when that fails: citcat_error(NULL) says why. */
CITCAT_API citcat_trace* citcat_open(const char* path, unsigned flags);

/** Reads the next record. 1: it is in `*record`; 0: the trace is at its end; -1: it cannot be read
    further, citcat_error(trace) says why. A replay that leaves the recording's evidence is such an
    error: all records before it were sure. */
CITCAT_API int citcat_next(citcat_trace* trace, citcat_record* record);

/** Reads up to `count` records and returns how many: fewer at the end or on an error, which
    citcat_error(trace) tells apart. */
CITCAT_API size_t citcat_read(citcat_trace* trace, citcat_record* records, size_t count);

/** The same of traces of 64 bits and of 32. Without CITCAT_WIDE only those of 32 are opened; with it
    citcat_next() and citcat_read() fail where an address has more. */
CITCAT_API size_t citcat_read_wide(citcat_trace* trace, citcat_wide_record* records, size_t count);

/** Goes to an instruction, forwards or backwards: the next record is its first. 0, or -1 on an
    error. Takes well under a second where the recording has checkpoints (citcat checkpoint) or the
   KT file an index; else everything before is replayed or read. */
CITCAT_API int citcat_seek(citcat_trace* trace, uint64_t instruction);

/** The same, to an iteration of a REP. */
CITCAT_API int citcat_seek_iteration(citcat_trace* trace, uint64_t instruction, uint32_t iteration);

/** Ends reading. NULL is allowed. */
CITCAT_API void citcat_close(citcat_trace* trace);

/** The last error of `trace`, or with NULL of the last citcat_open() or citcat_processors() of this
    thread, or of what was given NULL for a trace since: one line of text, valid until the next call. NULL when there was
    none. */
CITCAT_API const char* citcat_error(const citcat_trace* trace);

/** How many processors the machine of an archive has. The recording of number N of several, counted
    from 0, has the name "PATH@N"; everything that opens a recording takes it. 1 for one processor,
    for such a name, and for a KT file; 0 on an error: citcat_error(NULL) says why. */
CITCAT_API size_t citcat_processors(const char* path);

/** "0.1.0" */
CITCAT_API const char* citcat_version(void);

#ifdef __cplusplus
}
#endif

#endif
