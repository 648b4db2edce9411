#include "cli/why/other_writers.h"

#include <algorithm>

#include "cli/interrupt.h"
#include "cli/machine/processor_argument.h"
#include "events/processors/foreign_writes.h"

namespace citcat {
namespace {

/// Whether the answer would be another one if another processor had stored the same bytes again.
bool depends_on_memory(const Slice& slice) {
  const auto is_memory = [](const SliceInput& input) {
    return input.kind == SliceInput::Kind::dma || input.kind == SliceInput::Kind::image ||
           input.kind == SliceInput::Kind::unknown || input.kind == SliceInput::Kind::processor;
  };
  return std::any_of(slice.inputs.begin(), slice.inputs.end(), is_memory) ||
         std::any_of(slice.steps.begin(), slice.steps.end(), [](const SliceStep& step) {
           return !step.loads.empty() || !step.stores.empty();
         });
}

}  // namespace

OtherWriters::OtherWriters(const std::string& recording) {
  const RecordingName name = parse_recording_name(recording);
  if (!name.number) return;
  machine_ = find_machine(name.path);
  if (!machine_) return;
  reader_ = static_cast<std::uint8_t>(*name.number);
  if (!shows_order_of_stores(*machine_)) return;
  ForeignReadSearch::Options options;
  options.poll = [] { check_interrupt(); };
  search_ = std::make_unique<ForeignReadSearch>(*machine_, reader_, std::move(options));
}

void OtherWriters::name(Slice& slice) const {
  using Writers = Slice::Writers;
  if (!machine_ || !depends_on_memory(slice)) return;
  const std::vector<RecordingFile> files = open_processors(*machine_);
  const bool has_evidence = std::all_of(files.begin(), files.end(), [](const RecordingFile& file) {
    return file.meta().evidence == EvidenceMode::full;
  });
  if (!has_evidence) {
    slice.writers = Writers::no_evidence;
    return;
  }
  if (search_ == nullptr) {
    slice.writers = Writers::no_order;
  } else if (!search_->stopped().empty()) {
    slice.writers = Writers::cut_short;
  }
  find(slice, files);
}

void OtherWriters::find(Slice& slice, const std::vector<RecordingFile>& files) const {
  std::vector<SliceInput*> inputs;
  std::vector<ShownByte> bytes;
  for (SliceInput& input : slice.inputs) {
    ShownByte byte{input.address, input.transaction, std::nullopt};
    if (input.writer) {
      byte.writer = input.writer->processor;
    } else if (input.kind == SliceInput::Kind::image) {
      // The search has found what others stored before the first read.
      if (search_ != nullptr) continue;
    } else if (input.kind != SliceInput::Kind::dma) {
      continue;
    }
    if (!byte.transaction && input.kind != SliceInput::Kind::image) continue;
    inputs.push_back(&input);
    bytes.push_back(byte);
  }
  if (inputs.empty()) return;
  SharedBus bus = shared_bus_of(*machine_, files);
  const auto writes = find_foreign_writes(bus, reader_, bytes);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!writes[i]) continue;
    if (inputs[i]->writer) {
      inputs[i]->writer->transaction = writes[i]->transaction;
    } else {
      inputs[i]->kind = SliceInput::Kind::processor;
      inputs[i]->writer = writes[i];
    }
  }
}

}  // namespace citcat
