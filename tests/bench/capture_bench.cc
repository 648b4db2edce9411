// How fast captures of pin levels become transactions, beside how fast they decompress.

#include <benchmark/benchmark.h>

#include <vector>

#include "capture/source.h"
#include "formats/zip_reader.h"
#include "unit/capture/shared_data.h"

namespace citcat {
namespace {

std::string session() { return test::shared_file("ibm5150/ibm5150_samples_0_657000.sr"); }

std::size_t decompress(const std::string& path) {
  const ZipReader zip(path);
  std::vector<std::uint8_t> buffer(1 << 18);
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < zip.entries().size(); ++i) {
    ZipReader::Member member(zip, i);
    while (const std::size_t n = member.read(buffer)) bytes += n;
  }
  return bytes;
}

void BM_DecompressSession(benchmark::State& state) {
  if (session().empty()) return state.SkipWithError("no shared data: set CITCAT_SHARED");
  std::size_t bytes = 0;
  for (auto _ : state) bytes += decompress(session());
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes));
}
BENCHMARK(BM_DecompressSession);

/// Bytes are those of the samples, so that the ratio to the above is what decoding costs.
void BM_DecodeSession(benchmark::State& state) {
  if (session().empty()) return state.SkipWithError("no shared data: set CITCAT_SHARED");
  const std::size_t samples = decompress(session());
  std::size_t bytes = 0;
  for (auto _ : state) {
    const auto capture = open_capture({session()}, {});
    BusTransaction transaction;
    while (capture->next(transaction)) benchmark::DoNotOptimize(transaction.address);
    bytes += samples;
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes));
}
BENCHMARK(BM_DecodeSession);

}  // namespace
}  // namespace citcat
