#pragma once
// IDtrace's files of a run: trace, blocks, code, counts.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/idtrace/idtrace_writer.h"
#include "formats/io/byte_sink.h"
#include "tools/idtrace/block_builder.h"
#include "tools/idtrace/block_table.h"

namespace citcat::tools {

/// Which of the files, by IDtrace's own options.
enum class IdtraceContent : std::uint8_t {
  profile,    ///< -p: `.blk` and `.cnt`
  branch,     ///< -b: `.trc`
  cache,      ///< -c, -l: `.trc`
  execution,  ///< -e: `.trc` and `.blk`
};

struct IdtraceOptions {
  IdtraceContent content = IdtraceContent::execution;
  std::uint32_t line_bytes = 16;  ///< of cache traces: a power of two, 4 at least
  bool repeats = false;           ///< of cache traces: -r, references of REP have tags of their own
};

/// Whether the name is that of a profile's file: `*.cnt`, `*.blk`.
bool is_idtrace_profile(const std::string& path);

/// Where the files go. Names that are empty are not written.
struct IdtraceFiles {
  std::string trace, blocks, counts, code;
  /// The files that `content` needs, named like `path` with its ending `.trc`, `.blk` or `.cnt`
  /// (with `.zst`) replaced. `path` itself is the trace, or of a profile the counts. Throws
  /// UsageError where it is the standard output and there is more than one file.
  static IdtraceFiles beside(const std::string& path, IdtraceContent content);
};

/// What an output made of a part of the run, from the beginning of a block to the end of one.
struct IdtracePart {
  std::uint64_t instructions = 0;
  std::vector<ExecutedRun> blocks;
  std::vector<std::uint64_t> executions;  ///< of a profile, of each block
};

/// Writes the files from what it receives. If it is interrupted, no file gets its name.
class IdtraceOutput final : private IdtraceBlockReceiver {
 public:
  IdtraceOutput(const IdtraceFiles& files, const IdtraceOptions& options);
  /// For a part of the run: writes no files. Entries of blocks in the trace, if there is one, have
  /// the blocks' numbers.
  IdtraceOutput(std::unique_ptr<ByteSink> trace, const IdtraceOptions& options);
  /// Everything that a part received except its trace, which the sink has: whole blocks.
  IdtracePart take_part();
  /// As if everything that the part received had come here, between two blocks: first its blocks,
  /// then its trace, piece by piece.
  void add_blocks(const IdtracePart& part);
  void add_trace(std::vector<std::uint8_t> piece);

  /// As of IdtraceBlockBuilder.
  void instruction(LinearAddr linear, const DecodedInstruction& info,
                   std::span<const std::uint32_t> addresses, std::uint32_t count = 1,
                   std::uint32_t step = 0) {
    instructions_ += !info.is_repeated() || addresses.empty() ? 1 : count;
    builder_.instruction(linear, info, addresses, count, step);
  }
  /// Instructions and iterations so far.
  std::uint64_t instructions() const { return instructions_; }
  /// Completes all files.
  void finish();

 private:
  void open(const ExecutedRun& run, const DecodedInstruction& last) override;
  void entries(std::span<const IdtraceBlockEntry> entries) override;
  void close() override;
  void write_lines(const ExecutedRun& run);
  void write_data(const IdtraceBlockEntry& entry);

  IdtraceFiles files_;
  IdtraceOptions options_;
  IdtraceBlockTable table_;
  std::vector<std::uint64_t> executions_;  ///< of a profile, of each block
  std::vector<std::uint32_t> numbers_;     ///< here, of the blocks of the part that is added
  bool is_part_ = false;
  std::unique_ptr<ByteSink> sink_;
  std::optional<IdtraceWriter> writer_;
  std::optional<IdtraceEntry> control_;  ///< of a branch trace: what ends the open block
  IdtraceBlockBuilder builder_{*this};
  std::uint64_t instructions_ = 0;
};

}  // namespace citcat::tools
