#include "replay/infer/places/place_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "formats/io/log.h"

namespace citcat {

namespace {

const Logger place_logger("place");

}  // namespace

PlaceSearch::PlaceSearch(const Recording& recording, const EvidenceSource& evidence,
                         const PlacerOptions& options)
    : options_(options),
      surroundings_(scan_interrupts(recording, recording.bus.form == CacheForm::none, *evidence())),
      run_(recording, evidence, options),
      hidden_(run_, evidence, surroundings_, window_, trials_) {}

/// Takes the first group that is left and goes on from there.
void PlaceSearch::accept(Placement placement) {
  PlacedEvent event;
  event.interrupt = now_.interrupt;
  event.placement = placement;
  // What is doubtful is not often counted. Without counts nothing is plainly counted.
  std::stable_partition(now_.groups.begin(), now_.groups.end(),
                        [](const BoundaryGroup& g) { return g.plainly_counted; });
  describe(event, now_.groups);
  // What was not looked at may fit as well.
  if (now_.too_many) event.placement = Placement::ambiguous;
  event.more = event.candidates > 1 && (now_.endless || now_.too_many);
  if (place_logger.at(LogLevel::debug)) {
    place_logger.write(
        fmt::format("interrupt {} at instruction {}, iteration {}: {} of {} boundaries",
                    event.interrupt, event.position.instruction, event.position.iteration,
                    placement_name(event.placement), event.candidates));
  }
  run_.go_back(*now_.window);
  run_.set_position(event.interrupt, event.position);
  const std::size_t number = report_.events.size();
  if (event.placement == Placement::ambiguous) {
    choices_.add(number, now_);
  } else {
    run_.release();
  }
  if (run_.has_cache() && now_.groups.size() > 1) frames_.watch(number, now_.groups);
  report_.events.push_back(std::move(event));
  run_.effort().set_placed(report_.events.size());
}

/// Everything is placed. Where a choice was made, what is left of the evidence may refute it.
bool PlaceSearch::finish() {
  if (choices_.empty() && frames_.empty()) return true;
  left_ = run_.run_to_end().divergence;
  return !left_ && !frames_.found_wrong();
}

/// False when nothing fits.
bool PlaceSearch::place_next(std::size_t interrupt) {
  if (run_.is_hidden(interrupt)) return place_hidden(interrupt);
  now_ = window_.collect(interrupt);
  left_ = now_.left;
  if (now_.groups.empty() || run_.interrupted()) return false;
  Placement placement = Placement::unique;
  if (now_.groups.size() > 1 && run_.has_cache()) {
    now_.followed_far = LineDecider::have_one_stack(now_.groups);
    lines_.decide(now_, now_.followed_far);
    now_.followed_far = LineDecider::have_one_stack(now_.groups);
    if (now_.groups.size() > 1) placement = Placement::ambiguous;
  } else if (now_.groups.size() > 1) {
    placement = trials_.decide(now_);
  }
  if (now_.groups.empty() || run_.interrupted()) return false;
  accept(placement);
  return true;
}

/// False when no boundary fits.
bool PlaceSearch::place_hidden(std::size_t interrupt) {
  HiddenInterrupts::Found found = hidden_.find(interrupt);
  now_ = std::move(found.candidates);
  left_ = now_.left;
  if (run_.interrupted()) return false;
  switch (found.kind) {
    case HiddenInterrupts::Found::Kind::nowhere:
      return false;
    case HiddenInterrupts::Found::Kind::absent:
      dismiss(interrupt);
      return true;
    case HiddenInterrupts::Found::Kind::place:
      break;
  }
  accept(found.placement);
  return true;
}

/// The program comes to the marker by itself: there was no interrupt.
void PlaceSearch::dismiss(std::size_t interrupt) {
  run_.schedule().interrupts[interrupt].kind = Interrupt::Kind::none;
  PlacedEvent event;
  event.interrupt = interrupt;
  event.placement = Placement::absent;
  event.position = run_.position();
  run_.set_position(interrupt, event.position);
  report_.events.push_back(std::move(event));
  run_.effort().set_placed(report_.events.size());
}

/// The run that followed the places taken diverged from the evidence, or a line has shown one of
/// them to be another: takes the next one. False when there is none.
bool PlaceSearch::try_another() {
  if (frames_.found_wrong()) {
    choices_.correct(frames_.take_wrong(), [this](const FrameWatch::Found& found) {
      return frames_.shows_memory(found);
    });
  } else if (!choices_.revise()) {
    return false;
  }
  if (run_.effort().spent()) return false;
  take_back();
  return true;
}

/// Goes back to the latest choice and takes the first of what is left of it.
void PlaceSearch::take_back() {
  Choice choice = choices_.take_latest();
  if (place_logger.at(LogLevel::info)) {
    place_logger.write(fmt::format("what follows refutes the place of interrupt {}: {} others left",
                                   choice.left.interrupt, choice.left.groups.size()));
  }
  while (report_.events.size() > choice.event) {
    const PlacedEvent& event = report_.events.back();
    run_.set_position(event.interrupt, std::nullopt);
    if (event.placement == Placement::absent) {
      run_.schedule().interrupts[event.interrupt].kind = Interrupt::Kind::on_chip;
    }
    report_.events.pop_back();
  }
  frames_.forget_from(choice.event);
  hidden_.restart();
  now_ = std::move(choice.left);
  now_.endless = now_.too_many = false;
  accept(now_.groups.size() > 1 ? Placement::ambiguous : Placement::unique);
}

void PlaceSearch::fail(std::size_t interrupt) {
  const std::vector<Interrupt>& counted = run_.recording().interrupts;
  for (std::size_t i = interrupt; i < counted.size(); ++i) {
    if (!counted[i].position_known) {
      report_.events.push_back({i, Placement::none, {}, 0, false, {}});
    }
  }
  report_.divergence = left_ ? *left_ : fits_nowhere(interrupt);
}

Divergence PlaceSearch::fits_nowhere(std::size_t interrupt) const {
  Divergence d;
  d.position = now_.window ? now_.window->position() : run_.position();
  d.transaction = run_.interrupt(interrupt).transaction;
  d.reason = now_.window ? "what follows the interrupt fits none of the boundaries it may be at"
                         : "no instruction boundary fits what the interrupt stores";
  d.expected = "interrupt between the transactions around " + std::to_string(d.transaction);
  if (const auto& count = run_.interrupt(interrupt).count) {
    d.expected += fmt::format(", where {} {} are counted{}", count->value,
                              count_unit_name(count->unit), count->from_start ? "" : " in all");
  }
  return d;
}

/// Behind a write-back cache a place that was taken of several may be wrong without showing it
/// soon, and what was tried after it was tried in a run that may be another.
void PlaceSearch::qualify() {
  if (!run_.has_cache()) return;
  auto event = std::find_if(report_.events.begin(), report_.events.end(), [](const PlacedEvent& e) {
    return e.placement == Placement::ambiguous;
  });
  if (event == report_.events.end()) return;
  for (++event; event != report_.events.end(); ++event) {
    if (event->placement == Placement::none) continue;
    event->placement = Placement::ambiguous;
    event->more = true;
  }
}

/// The time is spent, in the midst of anything: what has no place is again as it was recorded.
void PlaceSearch::give_up() {
  const std::vector<Interrupt>& recorded = run_.recording().interrupts;
  std::vector<bool> placed(recorded.size());
  for (const PlacedEvent& event : report_.events) placed[event.interrupt] = true;
  std::size_t first = placed.size();
  for (std::size_t i = placed.size(); i-- > 0;) {
    if (recorded[i].position_known || placed[i]) continue;
    first = i;
    run_.schedule().interrupts[i] = recorded[i];
  }
  report_.given_up = options_.time->text();
  Divergence d;
  d.position = {run_.effort().furthest(), 0};
  d.reason = "the search for the places of interrupts was given up: " + report_.given_up;
  if (first != placed.size()) d.transaction = recorded[first].transaction;
  left_ = std::move(d);
  fail(first);
}

void PlaceSearch::place_all() {
  for (;;) {
    const auto interrupt = run_.next_unplaced();
    const bool done = interrupt ? place_next(*interrupt) : finish();
    if (run_.effort().spent()) return give_up();
    if (done && !interrupt) return;
    if (done || try_another()) continue;
    if (run_.effort().spent()) return give_up();
    if (interrupt) fail(*interrupt);
    return;
  }
}

PlacementReport PlaceSearch::run() {
  if (run_.recording().bus.form == CacheForm::write_back && !run_.has_cache()) {
    left_.emplace();
    left_->reason = "there is no model of the write-back cache, which hides what interrupts push";
    fail(*run_.next_unplaced());
  } else {
    place_all();
    qualify();
  }
  report_.tried = run_.effort().tried();
  report_.instructions = run_.effort().instructions();
  report_.schedule = std::move(run_.schedule());
  return std::move(report_);
}

}  // namespace citcat
