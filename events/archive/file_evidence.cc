#include "events/archive/file_evidence.h"

#include "events/archive/recording_codec.h"

namespace citcat {

bool FileEvidenceReader::next(BusTransaction& out) {
  if (next_ == decoded_ && !decode(false)) return false;
  out = block_[next_++];
  return true;
}

std::uint8_t FileEvidenceReader::next_line(BusTransaction& out) {
  if (next_ == decoded_ && !decode(true)) return 0;
  out = block_[next_];
  return parts_[next_++];
}

bool FileEvidenceReader::decode(bool lines) {
  next_ = 0;
  do {
    decoded_ = lines ? chunk_.next_lines(block_, parts_) : chunk_.next_block(block_);
  } while (decoded_ == 0 && load_next_chunk());
  if (stand_ins_ != nullptr) {
    for (BusTransaction& t : std::span(block_).first(decoded_))
      if (t.is_memory()) t.address = stand_ins_->meant(t.address);
  }
  return decoded_ != 0;
}

bool FileEvidenceReader::load_next_chunk() {
  const auto ends_evidence = [](ChunkKind kind) {
    return kind == kEvidenceChunk || kind == kLostChunk || kind == kMetaChunk;
  };
  while (at_ < chunks_.size() && !ends_evidence(chunks_[at_].kind)) ++at_;
  // All evidence is before META, because it is written while the capture is read.
  if (at_ == chunks_.size() || chunks_[at_].kind == kMetaChunk) return false;
  const ChunkInfo& info = chunks_[at_++];
  const std::vector<std::uint8_t> payload = container_->read(info);
  ByteReader in(payload, container_->path(), info.offset);
  if (info.kind == kLostChunk) {
    in.fail("expected evidence, found that it was lost: " + decode_lost_chunk(in).message);
  }
  chunk_ = EvidenceChunk(in);
  return true;
}

}  // namespace citcat
