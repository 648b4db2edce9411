// Runs the commands of every tests/golden/transcripts/*.txt and compares what they print with the
// file's. scripts/rebase rewrites the outputs; the review reads that difference.

#include "golden/transcript.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "cli/command.h"
#include "golden/golden_files.h"
#include "golden/process.h"

namespace citcat::testing {
namespace {

class TranscriptFile : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(TranscriptFile, PrintsWhatItShows) {
  const TemporaryFolder folder;
  Transcript transcript = load_transcript(GetParam());
  ASSERT_FALSE(transcript.steps.empty());
  for (TranscriptStep& step : transcript.steps) {
    const std::string output = run_step(step, folder.path());
    if (!is_rebasing()) {
      EXPECT_EQ(output, step.output) << "of: " << step.command;
    }
    step.output = output;
  }
  if (is_rebasing()) write_file(GetParam(), transcript_text(transcript));
}

TEST_P(TranscriptFile, IsWrittenAsItIsRead) {
  EXPECT_EQ(transcript_text(load_transcript(GetParam())), read_file(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Golden, TranscriptFile,
                         ::testing::ValuesIn(golden_files("transcripts", ".txt")),
                         golden_test_name);

TEST(Transcripts, ShowTheHelpOfEveryCommand) {
  const Transcript help = load_transcript(CITCAT_SOURCE_DIR "/tests/golden/transcripts/help.txt");
  for (const Command* command : command_list()) {
    const std::string wanted = std::string("citcat ") + command->name + " --help";
    EXPECT_TRUE(std::any_of(help.steps.begin(), help.steps.end(), [&](const TranscriptStep& step) {
      return step.command == wanted;
    })) << wanted;
  }
}

TEST(Transcripts, ShowBothOutputsAndTheExitStatusAndHideTimes) {
  const TemporaryFolder folder;
  EXPECT_EQ(run_step({"", "echo out; echo err >&2; (exit 3)", ""}, folder.path()),
            "out\nerr\n[exit status 3]\n");
  EXPECT_EQ(run_step({"", "echo '{\"seconds\":0.25,\"n\":7}'", ""}, folder.path()),
            "{\"seconds\":...,\"n\":7}\n");
}

}  // namespace
}  // namespace citcat::testing
