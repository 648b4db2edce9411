// Prints each page of code with the instructions that a run executed in it (iterations of REP count
// one by one) from instruction FROM on, and holds the run to what its archive keeps.
//   code_pages RECORDING [FROM]
#include <formats/io/error.h>
#include <replay/infer/places/event_placer.h>
#include <replay/run/replay_session.h>

#include <iostream>
#include <map>
#include <string>

struct CodePages final : citcat::Observer {
  explicit CodePages(std::uint64_t first) : from(first) {}
  citcat::Interest interest() const override { return {.code = citcat::Detail::blocks}; }
  void instruction(const citcat::ExecutedInstruction& executed, citcat::Position now) override {
    if (now.instruction >= from) ++count[executed.physical.page()];
  }
  std::uint64_t from;
  std::map<std::uint32_t, std::uint64_t> count;
};

int main(int argc, char** argv) try {
  if (argc < 2) throw citcat::UsageError("usage: code_pages RECORDING [FROM]");
  auto file = citcat::RecordingFile::open(argv[1]);
  citcat::place_events(file, {});
  CodePages pages(argc > 2 ? std::stoull(argv[2]) : 0);
  citcat::SessionOptions options;
  options.from = pages.from;
  citcat::ReplaySession session(file, &pages, options);
  const citcat::ReplayReport report = session.run();
  for (const auto& [page, count] : pages.count) std::cout << page << " " << count << "\n";
  std::cout << "instructions " << report.instructions << "\n";
  return report.divergence || session.differs_before() ? 1 : 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 2;
}
