#pragma once

#include "cli/trace_run.h"
#include "formats/kt/kt.h"
#include "replay/trace/kt_sink.h"

namespace citcat {

/// Writes the trace of a range with several processes, each of which replays parts of it from the
/// archive's checkpoints; the output is that of one process, byte for byte. If the range has no
/// checkpoints at which to divide it, one process does it all, and a warning says so.
///
/// Nothing is compared with the evidence, as from any checkpoint: each part must arrive at the
/// checkpoints on its way. The processes take turns; output that is not needed yet waits in memory,
/// at most 128 MiB for each of them. The failure of a part's process is thrown as Error.
TraceRunResult run_parallel_trace(const RecordingFile& file, const KtOptions& kt, KtWriter& writer,
                                  const TraceRunOptions& options, unsigned processes,
                                  const Console& console);

}  // namespace citcat
