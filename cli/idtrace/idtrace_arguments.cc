#include "cli/idtrace/idtrace_arguments.h"

#include <filesystem>

#include "formats/io/error.h"
#include "formats/io/once_input.h"
#include "tools/idtrace/trace_output.h"

namespace citcat {

void IdtraceArguments::define(const CommandParser& parser) {
  parser.add_option("--blocks", blocks, "Blocks of an IDtrace file (default: the .blk beside it)");
  parser.add_option(
      "--image", image,
      "Code of an IDtrace file's blocks, or the original program (default: the .code beside it)");
}

IdtraceProgram IdtraceArguments::load(const std::string& path, bool code_needed) const {
  const bool through_pipe = is_once_input(path);
  if (through_pipe) make_rereadable(path);
  const bool has_name = !through_pipe && path != "-";
  if (!has_name && (blocks.empty() || (code_needed && image.empty()))) {
    throw UsageError(path +
                     ": a file that comes through a pipe has no other files beside it: name them "
                     "with --blocks and --image");
  }
  tools::IdtraceFiles beside;
  if (has_name) beside = tools::IdtraceFiles::beside(path, tools::IdtraceContent::execution);
  IdtraceProgram program;
  program.blocks = std::make_unique<const IdtraceBlocks>(
      IdtraceBlocks::load(blocks.empty() ? beside.blocks : blocks));
  const std::string code = image.empty() ? beside.code : image;
  const bool may_lack = image.empty() && !code_needed;
  if (!may_lack || (has_name && std::filesystem::exists(code))) {
    program.code = IdtraceCode::load(code, *program.blocks);
  }
  return program;
}

}  // namespace citcat
