#include "monitor/processor/recording.h"

#include <cstdio>
#include <utility>

namespace citcat::monitor {

void Recording::give_up(const std::string& why) {
  cpu_.sink.say("error " + why);
  active_ = true;  // so that the totals are told
  end("error");
}

void Recording::end(const std::string& reason) {
  if (!active_) return;
  close(reason);
  totals().say(reason, cpu_.sink);
}

void Recording::close(const std::string& reason) {
  if (!std::exchange(active_, false) || reason == "error") return;
  const unsigned driver = cpu_.sink.selected();
  cpu_.sink.select(cpu_.number);
  set_position();
  cpu_.sink.reached();
  cpu_.sink.select(driver);
}

Totals Recording::totals() const {
  return {flight_.completed,
          delivered_[0],
          delivered_[1],
          delivered_[2],
          cpu_.bus.external_changes(),
          cpu_.walker.walks(),
          cpu_.walker.disagreements()};
}

void Totals::add(const Totals& more) {
  instructions += more.instructions;
  interrupts += more.interrupts;
  exceptions += more.exceptions;
  software += more.software;
  external += more.external;
  walks += more.walks;
  disagreements += more.disagreements;
}

void Totals::say(const std::string& reason, RecordSink& sink) const {
  char text[512];
  std::snprintf(
      text, sizeof text,
      "stop instructions=%llu records=%llu interrupts=%llu exceptions=%llu "
      "software_interrupts=%llu external_changes=%llu walks=%llu disagreements=%llu "
      "reason=%s",
      static_cast<unsigned long long>(instructions),
      static_cast<unsigned long long>(sink.records()), static_cast<unsigned long long>(interrupts),
      static_cast<unsigned long long>(exceptions), static_cast<unsigned long long>(software),
      static_cast<unsigned long long>(external), static_cast<unsigned long long>(walks),
      static_cast<unsigned long long>(disagreements), reason.c_str());
  sink.say(text);
}

}  // namespace citcat::monitor
