#pragma once

#include "cli/trace_run.h"
#include "formats/kt.h"
#include "replay/kt_sink.h"

namespace citcat {

/// Writes the trace of a range with several processes, each of which replays parts of it from the
/// archive's checkpoints; the output is that of one process, byte for byte. Without checkpoints to
/// part the range at, one process does it all, and a warning says so.
///
/// A part is kept in a nameless file beside the others until those before it are written: at most
/// two for each process. Throws what a part's process failed with, as Error.
TraceRunResult run_parallel_trace(const RecordingFile& file, const KtOptions& kt, KtWriter& writer,
                                  const TraceRunOptions& options, unsigned processes,
                                  const Console& console);

}  // namespace citcat
