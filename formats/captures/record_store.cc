#include "formats/captures/record_store.h"

namespace citcat {
namespace {

// There is not much left to compress, and what is left is there at once when a writer is killed.
constexpr int kLevel = 1, kWorkers = 0;

std::unique_ptr<ByteSink> begin(const std::string& path) {
  auto file = open_plain_sink(path);
  file->write(kStoredRecordsMagic);
  return file;
}

}  // namespace

RecordStore::RecordStore(const std::string& path) : sink_(begin(path), kLevel, kWorkers) {}

void RecordStore::put(std::span<const std::uint8_t> chunk) {
  records_ += RecordChunkHeader::of(chunk.first<kRecordChunkHeaderBytes>()).records;
  sink_.write(chunk);
}

void RecordStore::put_record(std::span<const std::uint8_t, RecordUnpacker::kRecordBytes> record) {
  put(chunk_of_record(record));
}

void RecordStore::finish() {
  sink_.write(end_of_chunks(records_).stored());
  sink_.finish();
}

}  // namespace citcat
