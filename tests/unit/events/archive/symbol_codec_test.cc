#include "events/archive/symbol_codec.h"

#include <gtest/gtest.h>

#include "events/archive/recording_check.h"
#include "events/archive/recording_file.h"
#include "formats/io/error.h"
#include "unit/events/archive/random_recording.h"
#include "unit/temporary_folder.h"

namespace citcat {
namespace {

using test::TemporaryFolder;

SymbolModule large_module(std::size_t symbols) {
  SymbolModule module{"vmlinux", "", {}};
  for (std::size_t i = 0; i < symbols; ++i) {
    Symbol symbol;
    symbol.name = "name_" + std::to_string(i * 7919);
    symbol.address.value = static_cast<std::uint32_t>(0xc1000000 + 16 * i);
    symbol.size = i % 5;
    symbol.kind = static_cast<SymbolKind>(i % 2);
    symbol.binding = static_cast<SymbolBinding>(i % 3);
    module.symbols.push_back(std::move(symbol));
  }
  settle_symbols(module);
  return module;
}

class SymbolsInArchives : public TemporaryFolder {
 protected:
  void SetUp() override {
    Recording recording = test::RandomRecording(3).recording();
    recording.totals = {};  // as of the evidence, which there is none of
    RecordingFileWriter(path("r.citcat")).finish(recording);
  }
  void append(const std::vector<SymbolModule>& modules) {
    RecordingAppender appender(path("r.citcat"));
    appender.add_symbols(modules);
    appender.finish();
  }
};

TEST_F(SymbolsInArchives, AnArchiveWithoutNamesHasNone) {
  EXPECT_TRUE(RecordingFile::open(path("r.citcat")).symbols().empty());
}

TEST_F(SymbolsInArchives, WhatWasAddedIsReadAgainAndIdentityStays) {
  const std::string identity = RecordingFile::open(path("r.citcat")).identity().hex();
  SymbolModule program = large_module(3);
  program.name = "prog";
  program.process = "sort";
  // More than a chunk holds, and two times.
  const std::vector<SymbolModule> first{large_module(kSymbolChunkRows + 10)}, second{program};
  append(first);
  append(second);
  const RecordingFile file = RecordingFile::open(path("r.citcat"));
  const auto read = file.symbols();
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0], first[0]);
  EXPECT_EQ(read[1], program);
  EXPECT_EQ(file.identity().hex(), identity);
  const RecordingCheck check = check_recording(path("r.citcat"));
  for (const auto& d : check.scan.damage) ADD_FAILURE() << d.message;
  for (const auto& l : check.losses) ADD_FAILURE() << l;
  EXPECT_TRUE(check.sound());
}

TEST_F(SymbolsInArchives, TwoModulesOfOneNameStayTwo) {
  append({large_module(4), large_module(5)});
  EXPECT_EQ(RecordingFile::open(path("r.citcat")).symbols().size(), 2u);
}

TEST_F(SymbolsInArchives, ACheckNoticesWhatMakesNoSense) {
  std::vector<std::uint8_t> payload;
  encode_symbols(large_module(20), [&](std::vector<std::uint8_t> made) { payload = made; });
  for (std::size_t size = 0; size < payload.size(); ++size) {
    std::vector<SymbolModule> modules;
    ByteReader in({payload.data(), size}, "cut");
    EXPECT_THROW(decode_symbols(in, modules), FormatError) << size;
  }
  payload[0] = 1;  // goes on with a module that is not there
  std::vector<SymbolModule> modules;
  ByteReader in(payload, "alone");
  EXPECT_THROW(decode_symbols(in, modules), FormatError);
}

}  // namespace
}  // namespace citcat
