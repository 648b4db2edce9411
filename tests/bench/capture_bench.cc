// How fast captures become transactions and recordings, beside how fast their files decompress.
// `Ratio` is the time of plain decompression to that of decoding.

#include <benchmark/benchmark.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <random>
#include <vector>

#include "capture/bus/source.h"
#include "capture/import/import.h"
#include "events/derive/recording_builder.h"
#include "formats/io/input.h"
#include "formats/io/zip_reader.h"
#include "unit/capture/import/writer_library.cc"

namespace citcat {
namespace {

/// Processor time: what else the machine does is left out.
double seconds_of(const auto& work) {
  const std::clock_t start = std::clock();
  work();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

std::string temporary(const std::string& name) {
  return (std::filesystem::temp_directory_path() /
          ("citcat-bench-" + std::to_string(::getpid()) + "-" + name))
      .string();
}

// ---- pins --------------------------------------------------------------------------------------

/// 33 channels, 657,000 samples.
std::string session() { return CITCAT_SOURCE_DIR "/samples/ibm5150/area5150.sr"; }

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
  std::size_t bytes = 0;
  for (auto _ : state) bytes += decompress(session());
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes));
}
BENCHMARK(BM_DecompressSession);

/// Bytes are those of the samples.
void BM_DecodeSession(benchmark::State& state) {
  const std::size_t samples = decompress(session());
  const double plain = seconds_of([] { decompress(session()); });
  std::size_t bytes = 0;
  std::vector<BusTransaction> block(128);
  const double whole = seconds_of([&] {
    for (auto _ : state) {
      const auto capture = open_capture({session()}, {});
      while (capture->next_block(block) != 0) benchmark::DoNotOptimize(block.front().address);
      bytes += samples;
    }
  });
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes));
  state.counters["Ratio"] = plain * static_cast<double>(state.iterations()) / whole;
}
BENCHMARK(BM_DecodeSession);

/// All of an import: samples are decoded on a thread of their own, so that only the real time
/// tells.
void BM_ImportSession(benchmark::State& state) {
  const std::size_t samples = decompress(session());
  const std::string out = temporary("session.citcat");
  ImportOptions options;
  options.initial_state = CpuState{};
  std::size_t bytes = 0;
  for (auto _ : state) {
    import_capture({session()}, options, out);
    bytes += samples;
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes));
  std::filesystem::remove(out);
}
BENCHMARK(BM_ImportSession)->UseRealTime();

// ---- the native form ---------------------------------------------------------------------------

int append(void* file, const std::uint8_t* bytes, std::size_t size) {
  return std::fwrite(bytes, 1, size, static_cast<std::FILE*>(file)) == size ? 0 : -1;
}

/// A machine with 16-byte lines at work: mostly line fills of a working set, some stores and ports.
class NativeFile {
 public:
  explicit NativeFile(std::uint64_t records) : path_(temporary("native.cap")) {
    std::FILE* const file = std::fopen(path_.c_str(), "wb");
    citcat_capture_info info{};
    info.cpu = CITCAT_CPU_486;
    info.cache = CITCAT_CACHE_WRITE_THROUGH;
    info.line_bytes = 16;
    info.counts_instructions = info.counts_clocks = 1;
    citcat_capture capture;
    citcat_capture_begin(&capture, &info, append, file);
    std::mt19937 random(1);
    for (std::uint64_t i = 0; i < records; ++i) {
      const citcat_capture_record record = next(random, i);
      citcat_capture_put(&capture, &record);
    }
    citcat_capture_end(&capture);
    std::fclose(file);
  }
  ~NativeFile() { std::filesystem::remove(path_); }
  NativeFile(const NativeFile&) = delete;
  NativeFile& operator=(const NativeFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  static citcat_capture_record next(std::mt19937& random, std::uint64_t i) {
    citcat_capture_record record{};
    const unsigned kind = random() % 64;
    record.instructions = 20 * i;
    record.clock = static_cast<std::uint32_t>(7 * i);
    record.address = (random() % 0x40000) & ~15u;
    for (unsigned b = 0; b < 4; ++b)
      record.data[b] = static_cast<std::uint8_t>(record.address >> (8 * b));
    if (kind == 0) {
      record.type = CITCAT_IO_READ;
      record.address = 0x60;
      record.size = 1;
      record.data[1] = record.data[2] = record.data[3] = 0;
    } else if (kind < 16) {
      record.type = CITCAT_DATA_WRITE;
      record.size = 4;
    } else {
      record.type = kind < 40 ? CITCAT_CODE_READ : CITCAT_DATA_READ;
      record.size = 16;
      record.flags = CITCAT_LINE;
    }
    return record;
  }

  std::string path_;
};

constexpr std::uint64_t kRecords = 4'000'000;

const NativeFile& native_file() {
  static const NativeFile file(kRecords);
  return file;
}

void count_transactions(benchmark::State& state) {
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) *
                          static_cast<std::int64_t>(kRecords));
}

void BM_ReadNativeBytes(benchmark::State& state) {
  const std::string path = native_file().path();
  for (auto _ : state) {
    InputStream input(path);
    while (!input.next_block().empty()) {
    }
  }
  count_transactions(state);
}
BENCHMARK(BM_ReadNativeBytes)->Unit(benchmark::kMillisecond);

void BM_ReadNative(benchmark::State& state) {
  const std::string path = native_file().path();
  std::vector<BusTransaction> block(128);
  for (auto _ : state) {
    const auto capture = open_capture({path}, {});
    while (capture->next_block(block) != 0) benchmark::DoNotOptimize(block.front().address);
  }
  count_transactions(state);
}
BENCHMARK(BM_ReadNative)->Unit(benchmark::kMillisecond);

/// The derivation too: image, events and anchors, without an archive.
void BM_DeriveNative(benchmark::State& state) {
  const std::string path = native_file().path();
  std::vector<BusTransaction> block(128);
  for (auto _ : state) {
    const auto capture = open_capture({path}, {});
    RecordingBuilder builder({capture->info().bus}, nullptr);
    while (const std::size_t n = capture->next_block(block)) builder.add(std::span(block).first(n));
    benchmark::DoNotOptimize(builder.finish().totals.transactions);
  }
  count_transactions(state);
}
BENCHMARK(BM_DeriveNative)->Unit(benchmark::kMillisecond);

/// All of an import. `AllThreads` counts by the processor time of all threads, `Real` by the clock.
void BM_ImportNative(benchmark::State& state) {
  const std::string path = native_file().path(), out = temporary("native.citcat");
  ImportOptions options;
  options.initial_state = CpuState{};
  const auto begin = std::chrono::steady_clock::now();
  const double all = seconds_of([&] {
    for (auto _ : state) import_capture({path}, options, out);
  });
  const std::chrono::duration<double> real = std::chrono::steady_clock::now() - begin;
  const double records = static_cast<double>(state.iterations()) * static_cast<double>(kRecords);
  count_transactions(state);
  state.counters["AllThreads"] = records / all;
  state.counters["Real"] = records / real.count();
  std::filesystem::remove(out);
}
BENCHMARK(BM_ImportNative)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace citcat
