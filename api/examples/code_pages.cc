// Where a run spends its instructions: a replay with an observer of its own. Prints each page of
// code with the instructions executed in it (iterations of REP count one by one), from instruction
// FROM on, and checks the run against what its archive keeps.
//
//   code_pages RECORDING [FROM]

#include <formats/io/error.h>
#include <replay/infer/event_placer.h>
#include <replay/run/replay_session.h>

#include <iostream>
#include <map>
#include <string>

class CodePages final : public citcat::Observer {
 public:
  explicit CodePages(std::uint64_t from) : from_(from) {}
  citcat::Wants wants() const override { return {.instructions = true}; }
  void instruction(const citcat::ExecutedInstruction& executed, citcat::Position now) override {
    if (now.instruction >= from_) ++count[executed.physical.value >> 12];
  }
  std::map<std::uint32_t, std::uint64_t> count;

 private:
  std::uint64_t from_;
};

int main(int argc, char** argv) try {
  if (argc < 2) throw citcat::UsageError("usage: code_pages RECORDING [FROM]");
  auto file = citcat::RecordingFile::open(argv[1]);
  citcat::place_events(file, {});
  const std::uint64_t from = argc > 2 ? std::stoull(argv[2]) : 0;
  const citcat::Checkpoints checkpoints(file);
  citcat::SessionOptions options;
  options.checkpoints = &checkpoints;
  options.start = checkpoints.start_for({from, options.to});
  CodePages pages(from);
  citcat::ReplaySession session(file, &pages, options);
  const citcat::ReplayReport report = session.run();
  for (const auto& [page, count] : pages.count) std::cout << page << " " << count << "\n";
  std::cout << "instructions " << report.instructions << "\n";
  return report.divergence || session.digests().compare(report.instructions) ? 1 : 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 2;
}
