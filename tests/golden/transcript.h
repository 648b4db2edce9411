#pragma once
// A transcript: commands as a user types them, each with what it prints. README.md beside this file
// has the grammar.

#include <filesystem>
#include <string>
#include <vector>

namespace citcat::testing {

struct TranscriptStep {
  std::string given;    ///< its text in the file before the output: comments, command
  std::string command;  ///< for a shell
  std::string output;   ///< what it has to print, and its exit status unless that is 0
};

struct Transcript {
  std::vector<TranscriptStep> steps;
  std::string rest;  ///< text behind the last output
};

/// Throws FormatError, with the line's number as the offset.
Transcript load_transcript(const std::filesystem::path& path);
/// The text of the file, with the outputs that `transcript` has.
std::string transcript_text(const Transcript& transcript);

/// Runs the command in `folder` and returns what it prints on both outputs, as a transcript shows
/// it: without what differs from run to run.
std::string run_step(const TranscriptStep& step, const std::filesystem::path& folder);

}  // namespace citcat::testing
