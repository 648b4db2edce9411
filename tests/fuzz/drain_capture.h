#pragma once
// What fuzz targets do with a capture of bus records: read it to its end or to its error, one
// transaction after the other, and as runs wherever there are any: both must tell the same, also as
// evidence and in what is derived from them.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "capture/import/record_capture.h"
#include "events/archive/evidence_codec.h"
#include "events/archive/recording_codec.h"
#include "events/derive/recording_builder.h"
#include "fuzz/drain.h"

namespace citcat::fuzz {

/// What a capture holds up to its end or its error.
struct Drained {
  std::vector<BusTransaction> transactions;
  std::string error;  ///< "" at a clean end
};

/// Calls `read` with a capture that is open. Only citcat's own exceptions are allowed out of it.
template <typename Read>
Drained drain(const std::uint8_t* data, std::size_t size, const RecordFileMaker& make, Read read) {
  Drained drained;
  try {
    const auto capture = open_record_stream("fuzz", stream(data, size), {}, make);
    read(*capture, drained.transactions);
    CITCAT_ASSERT(capture->info().files.size() == 1);
  } catch (const InternalError&) {
    throw;
  } catch (const Error& error) {
    drained.error = error.what();
  }
  return drained;
}

inline bool same(const BusTransaction& a, const BusTransaction& b) {
  return a.index == b.index && a.clock == b.clock && a.position == b.position &&
         a.address == b.address && a.op == b.op && a.size == b.size && a.flags == b.flags &&
         a.data == b.data;
}

/// Packs runs as they are, and as their transactions.
class PackedBothWays {
 public:
  PackedBothWays() { runs_.clear(), single_.clear(); }

  void add(const AccessRun& run) {
    if (runs_.size() + run.size() > kEvidenceChunkTransactions) compare();
    std::vector<BusTransaction> transactions;
    for (std::size_t i = 0; i < run.size(); ++i) transactions.push_back(run.at(i));
    // In two parts, so that one begins in the middle of the columns.
    const std::size_t first = run.size() / 3;
    if (first != 0) runs_.add(run.part(0, first));
    runs_.add(run.part(first, run.size() - first));
    single_.add(transactions);
  }
  void compare() {
    CITCAT_ASSERT(runs_.encode() == single_.encode());
    runs_.clear(), single_.clear();
  }

 private:
  // Too large to be made for each input.
  inline static EvidenceEncoder runs_, single_;
};

template <typename Event>
bool same_place(const Event& a, const Event& b) {
  return a.position_known == b.position_known && a.position == b.position && a.anchor == b.anchor &&
         a.transaction == b.transaction;
}

/// Derives from runs as they are, and from their transactions.
class DerivedBothWays {
 public:
  void add(const AccessRun& run) {
    std::vector<BusTransaction> transactions;
    for (std::size_t i = 0; i < run.size(); ++i) transactions.push_back(run.at(i));
    if (runs_.takes(run)) {
      runs_.add(run);
    } else {
      std::vector<BusTransaction> copies = transactions;
      runs_.add(copies);
    }
    single_.add(transactions);
  }
  void add(const BusTransaction& transaction) {
    runs_.add(transaction);
    single_.add(transaction);
  }
  void compare() {
    const Recording a = runs_.finish(), b = single_.finish();
    const ArchiveMeta meta;
    CITCAT_ASSERT(encode_meta(a, meta) == encode_meta(b, meta));
    CITCAT_ASSERT(std::ranges::equal(a.image.pages(), b.image.pages(), [](auto& x, auto& y) {
      return x.first == y.first && x.second->data == y.second->data &&
             x.second->valid == y.second->valid;
    }));
    CITCAT_ASSERT(std::ranges::equal(a.interrupts, b.interrupts, [](auto& x, auto& y) {
      return x.kind == y.kind && x.vector == y.vector && same_place(x, y);
    }));
    CITCAT_ASSERT(std::equal(a.external_writes.begin(), a.external_writes.end(),
                             b.external_writes.begin(), b.external_writes.end(),
                             [](auto& x, auto& y) {
                               return x.address == y.address && x.data == y.data &&
                                      x.window_begin == y.window_begin && same_place(x, y);
                             }));
  }

 private:
  RecordingBuilder runs_{{}, nullptr}, single_{{}, nullptr};
};

inline void drain_records(const std::uint8_t* data, std::size_t size, const RecordFileMaker& make) {
  const Drained single = drain(data, size, make, [](CaptureReader& capture, auto& all) {
    for (BusTransaction t; capture.next(t); all.push_back(t)) {
      CITCAT_ASSERT(t.index == all.size());
      CITCAT_ASSERT(t.size <= kMaxTransactionBytes);
    }
  });
  DerivedBothWays derived;
  const Drained runs = drain(data, size, make, [&derived](CaptureReader& capture, auto& all) {
    BusTransaction t;
    PackedBothWays packed;
    do {
      for (AccessRun run = capture.run(); !run.empty(); run = capture.run()) {
        for (std::size_t i = 0; i < run.size(); ++i) all.push_back(run.at(i));
        packed.add(run);
        derived.add(run);
        capture.take_run(run);
      }
      packed.compare();
      if (!capture.next(t)) return;
      all.push_back(t);
      derived.add(t);
    } while (true);
  });
  derived.compare();
  CITCAT_ASSERT(single.error == runs.error);
  CITCAT_ASSERT(single.transactions.size() == runs.transactions.size());
  for (std::size_t i = 0; i < single.transactions.size(); ++i)
    CITCAT_ASSERT(same(single.transactions[i], runs.transactions[i]));
}

}  // namespace citcat::fuzz
