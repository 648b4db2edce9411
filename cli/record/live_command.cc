#include "cli/record/live_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <set>
#include <string_view>

#include "cli/record/emulator_command.h"
#include "cli/record/emulator_words.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

namespace fs = std::filesystem;

std::string whole_path(const std::string& path) {
  std::error_code error;
  const fs::path whole = fs::absolute(path, error);
  return error ? path : whole.lexically_normal().string();
}

bool is_one_of(std::string_view word, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(), [&](const char* one) { return word == one; });
}

/// "hda", "cdrom" and the like: where such an image is.
std::optional<unsigned> disk_of(const std::string& option) {
  if (option.size() == 3 && option.starts_with("hd") && option[2] >= 'a' && option[2] <= 'd')
    return static_cast<unsigned>(option[2] - 'a');
  if (option == "cdrom") return 2;
  return std::nullopt;
}

/// The time that the host's clock shows, as -rtc takes it.
std::string local_time() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  localtime_r(&now, &parts);
  std::array<char, 32> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  return {text.data(), size};
}

class LiveMachine {
 public:
  LiveMachine(const std::vector<std::string>& command, std::string console, bool keeps)
      : given_(command), console_(std::move(console)), keeps_(keeps) {
    for (const EmulatorOption& option : emulator_options(given_)) note(option);
  }

  LiveCommand run() {
    const bool is_path = given_[0].find('/') != std::string::npos;
    out_.command.push_back(is_path ? whole_path(given_[0]) : given_[0]);
    if (keeps_) prepare_keeping();
    for (const EmulatorOption& option : emulator_options(given_)) take(option);
    join_networks();
    if (nographic_) put("display", "none");
    if (!has_monitor_) put("monitor", "none");
    if (!has_parallel_ && !bare_) put("parallel", "null");
    if (!has_serial_ && !bare_) add_console(nographic_ ? "stdio,signal=off" : "vc");
    if (!has_network_ && !bare_ && !is_small_) add_network("user", usual_card(), "");
    if (disks_ != 0)
      tell(fmt::format(
          "the guest's writes to its disks go to {} files, so that the images stay as they are",
          keeps_ ? "the session's" : "temporary"));
    return std::move(out_);
  }

 private:
  void put(const std::string& option, const std::string& value) {
    out_.command.push_back("-" + option);
    out_.command.push_back(value);
  }
  void tell(std::string text) { out_.changes.push_back(std::move(text)); }

  /// QEMU stores the state of the machine in the first image that it can, the memory under the name
  /// of its backend, and that of some devices not exactly enough to go on as if nothing had been.
  void prepare_keeping() {
    const char* const kState = "state.qcow2";
    out_.kept_files.emplace_back(kState, "");
    put("drive", fmt::format("file={}{},if=none,id=citcat-state,discard=unmap", kKeptFile, kState));
    put("object", fmt::format("memory-backend-ram,id=citcat-ram,size={}", ram_bytes(given_)));
    put("machine", "memory-backend=citcat-ram");
    if (is_micro_) return;
    put("machine", "hpet=off");
    tell("-machine hpet=off is added: QEMU does not store the state of an HPET exactly");
  }

  /// A device, "e1000,netdev=n", that does the same in a repeated run, and that goes on from its
  /// stored state, where that is kept, as if nothing had been.
  std::string repeated_device(const std::string& device) {
    const std::string kind = device.substr(0, device.find(','));
    OptionValue value(device);
    if (is_one_of(kind, {"usb-ehci", "ich9-usb-ehci1", "ich9-usb-ehci2"}) ||
        (keeps_ && is_one_of(kind, {"qemu-xhci", "nec-usb-xhci"})))
      return usb_controller(kind, value);
    // hid_post_load() in QEMU's hw/input/hid.c; firmware has a keyboard repeat its reports.
    if (keeps_ && kind == "usb-kbd")
      throw UsageError(
          "--keep: -device usb-kbd: QEMU does not store when it reports keys again; leave it out");
    if (kind.starts_with("ich9-usb-uhci")) {  // a companion of such a controller
      value.remove("masterbus");
      value.remove("firstport");
      return value.text();
    }
    if (!keeps_) return device;
    if (kind == "e1000" || kind.starts_with("e1000-") || kind == "e1000e") {
      tell(fmt::format(
          "network card {}: rtl8139 in its place, since QEMU does not store its state exactly",
          kind));
      return "rtl8139" + device.substr(kind.size());
    }
    if (!kind.starts_with("virtio-net") || value.get("guest_announce") == "off") return device;
    // virtio_net_post_load_device() in QEMU's hw/net/virtio-net.c.
    tell(
        fmt::format("network card {}: guest_announce=off is added, since the card would announce "
                    "itself wherever a run is resumed",
                    kind));
    value.set("guest_announce", "off");
    return value.text();
  }

  /// One whose frames QEMU repeats, in the place of `kind`, on the same bus and with the same
  /// devices.
  std::string usb_controller(const std::string& kind, const OptionValue& given) {
    tell(fmt::format(
        "USB controller {}: piix3-usb-uhci in its place, since QEMU does not repeat its frames",
        kind));
    OptionValue value("piix3-usb-uhci");
    for (const char* const key : {"id", "bus", "addr", "multifunction"})
      if (const auto its = given.get(key)) value.set(key, *its);
    return value.text();
  }

  /// Looks at what every option may depend on, before the first one is taken.
  void note(const EmulatorOption& option) {
    const std::string value = option.value.value_or("");
    if (is_one_of(option.name, {"machine", "M"})) {
      q35_ |= value.find("q35") != std::string::npos;
      is_micro_ |= value.find("microvm") != std::string::npos;
      is_small_ |=
          value.find("microvm") != std::string::npos || value.find("isapc") != std::string::npos;
    }
    if (option.name == "device" && value.starts_with("floppy,"))
      floppies_.insert(OptionValue(value).get("drive").value_or(""));
    nographic_ |= option.name == "nographic";
    bare_ |= option.name == "nodefaults";
    has_serial_ |= option.name == "serial";
    has_parallel_ |= option.name == "parallel";
    has_monitor_ |= option.name == "monitor";
    has_network_ |= is_one_of(option.name, {"nic", "net", "netdev"});
  }

  void take(const EmulatorOption& option) {
    const std::string& name = option.name;
    const std::string value = option.value.value_or("");
    if (name.empty())
      add_disk(OptionValue("file=" + escaped(value)), 0, "ide-hd");
    else if (const auto disk = disk_of(name))
      add_disk(OptionValue("file=" + escaped(value)), *disk, name == "cdrom" ? "ide-cd" : "ide-hd");
    else if (name == "fda" || name == "fdb")
      add_disk(OptionValue("file=" + escaped(value)), std::nullopt, "floppy");
    else if (name == "drive")
      take_drive(OptionValue(value));
    else if (name == "netdev")
      take_netdev(OptionValue(value));
    else if (name == "nic")
      take_nic(OptionValue(value));
    else if (name == "net")
      take_net(OptionValue(value));
    else if (name == "pflash" || name == "sd" || name == "mtdblock")
      take_drive(
          OptionValue("if=" + (name == "mtdblock" ? "mtd" : name) + ",file=" + escaped(value)));
    else if (name == "rtc")
      take_clock(OptionValue(value));
    else if (name == "serial")
      take_serial(value);
    else if (name == "device" && !refuses(name, value))
      put("device", repeated_device(value));
    else if (name == "usb" && q35_)  // an EHCI controller with its companions
      put("device", usb_controller("-usb", OptionValue("")));
    else if (is_one_of(name, {"machine", "M"}))
      take_machine(name, OptionValue(value));
    else if (is_one_of(name, {"kernel", "initrd", "bios", "dtb"}))
      put(name, keep(value));
    else if (!is_left_out(name) && !refuses(name, value))
      take_as_it_is(option);
  }

  /// -nographic is put as what it stands for; the log needs a clock of its own.
  static bool is_left_out(const std::string& name) {
    return is_one_of(name, {"nographic", "snapshot", "icount"});
  }

  void take_as_it_is(const EmulatorOption& option) {
    out_.command.push_back("-" + option.name);
    if (option.value) out_.command.push_back(*option.value);
  }

  void take_machine(const std::string& name, OptionValue value) {
    if (q35_ && value.get("usb") == "on") {
      value.remove("usb");
      put("device", usb_controller("of -machine usb=on", OptionValue("")));
    }
    if (!value.text().empty()) put(name, value.text());
  }

  static bool refuses(const std::string& name, const std::string& value) {
    const std::string kind = value.substr(0, value.find(','));
    if (name == "blockdev")
      throw UsageError(
          "--live: -blockdev is not understood; write -drive file=IMAGE,if=none,id=NAME in its "
          "place");
    if (name == "readconfig")
      throw UsageError(
          "--live: -readconfig is not understood; write what is in the file on the command line");
    if (name == "chardev" && OptionValue(value).get("mux") == "on")
      throw UsageError(
          "--live: -chardev with mux=on cannot be used: QEMU does not log what comes from it; "
          "write "
          "-serial stdio");
    if (is_one_of(name, {"virtfs", "fsdev", "loadvm", "incoming"}))
      throw UsageError(
          fmt::format("--live: -{} cannot be used: its data is not in QEMU's log", name));
    if (name == "device" && kind == "nvme")
      throw UsageError(
          "--live: -device nvme cannot be used: QEMU does not repeat when its requests end; write "
          "-device virtio-blk-pci in its place");
    if (name == "device" &&
        (is_one_of(kind, {"usb-host", "usb-redir"}) || kind.starts_with("vfio")))
      throw UsageError(fmt::format(
          "--live: -device {} cannot be used: what a device of the host does is not in QEMU's log",
          kind));
    return false;
  }

  std::string keep(const std::string& path) {
    if (has_protocol(path))
      throw UsageError(fmt::format(
          "--live: {}: expected a file, whose contents can be compared when the run is repeated; "
          "make an image of it",
          path));
    out_.images.push_back(whole_path(path));
    return out_.images.back();
  }

  /// "ide-hd,drive=NAME" at its place: two on a bus of a PC, one on that of an AHCI controller.
  std::string disk_device(const std::string& device, const std::string& name,
                          std::optional<unsigned> index) const {
    std::string text = device + ",drive=" + name;
    if (!index || !device.starts_with("ide")) return text;
    return text + (q35_ ? fmt::format(",bus=ide.{},unit=0", *index)
                        : fmt::format(",bus=ide.{},unit={}", *index / 2, *index % 2));
  }

  /// The image behind blkreplay, which is then called `name`. A floppy's is read while the guest
  /// waits at one instruction, where blkreplay would wait for a later event of the log.
  void put_image(OptionValue drive, const std::string& name) {
    ++disks_;
    drive.set("file", keep(drive.get("file").value_or("")));
    const bool read_only = drive.get("media") == "cdrom" || drive.get("readonly") == "on";
    if (keeps_ && !read_only) keep_writes(drive);
    for (const char* const key : {"if", "index", "bus", "unit", "media", "snapshot"})
      drive.remove(key);
    drive.set("if", "none");
    const bool at_once = floppies_.contains(name);
    drive.set("id", at_once ? name : name + "-image");
    if (read_only || !keeps_) drive.set(read_only ? "readonly" : "snapshot", "on");
    put("drive", drive.text());
    if (at_once) return;
    put("drive", fmt::format("driver=blkreplay,if=none,image={}-image,id={}{}", name, name,
                             read_only ? ",readonly=on" : ""));
  }

  /// What the guest writes goes into a file of the session, through which its image shows.
  void keep_writes(OptionValue& drive) {
    const std::string image = drive.get("file").value_or("");
    const std::string format = drive.get("format").value_or("raw");
    if (!is_one_of(format, {"raw", "qcow2"}))
      throw UsageError(
          fmt::format("--keep: {}: expected an image in the format raw or qcow2, found {}; write "
                      "qemu-img convert "
                      "-O qcow2 {} OTHER, and use that",
                      image, format, image));
    const std::string name = fmt::format("disk{}.qcow2", out_.kept_files.size());
    out_.kept_files.emplace_back(name, image);
    drive.remove("format");
    drive.set("file", kKeptFile + name);
    drive.set("discard", "unmap");
  }

  void add_disk(OptionValue drive, std::optional<unsigned> index, const std::string& device) {
    const std::string name = fmt::format("citcat-disk{}", disks_);
    if (device == "ide-cd") drive.set("media", "cdrom");
    if (device == "floppy") floppies_.insert(name);
    put_image(std::move(drive), name);
    put("device", disk_device(device, name, index));
  }

  void take_drive(OptionValue drive) {
    const std::string interface = drive.get("if").value_or("ide");
    const auto file = drive.get("file");
    if ((!file || file->empty()) && drive.names_file_otherwise())
      throw UsageError(fmt::format(
          "--live: -drive {}: expected file=IMAGE; other ways to name it are not understood",
          drive.text()));
    if (!file || file->empty()) return put("drive", drive.text());
    if (interface == "pflash") {
      drive.set("file", keep(*file));
      if (drive.get("readonly") != "on") keeps_ ? keep_writes(drive) : drive.set("snapshot", "on");
      return put("drive", drive.text());
    }
    if (interface == "none") {
      const auto id = drive.get("id");
      if (!id) throw UsageError("--live: -drive with if=none: expected id=NAME");
      return put_image(std::move(drive), *id);
    }
    const bool disc = drive.get("media") == "cdrom";
    const char* const device = interface == "ide"      ? (disc ? "ide-cd" : "ide-hd")
                               : interface == "virtio" ? "virtio-blk-pci"
                               : interface == "floppy" ? "floppy"
                                                       : nullptr;
    if (device == nullptr)
      throw UsageError(fmt::format(
          "--live: -drive with if={} is not understood; write if=none,id=NAME and a -device for it",
          interface));
    std::optional<unsigned> index;
    if (const auto given = drive.get("index"))
      index = static_cast<unsigned>(std::strtoul(given->c_str(), nullptr, 10));
    add_disk(std::move(drive), index, device);
  }

  void filter(const std::string& network) {
    put("object", fmt::format("filter-replay,id=citcat-filter{},netdev={}", networks_++, network));
  }

  void take_netdev(const OptionValue& value) {
    put("netdev", value.text());
    if (const auto id = value.get("id")) filter(*id);
  }

  void add_network(const std::string& backend, const std::string& card, const std::string& mac) {
    const std::string name = fmt::format("citcat-net{}", networks_);
    OptionValue netdev(backend);
    netdev.set("id", name);
    put("netdev", netdev.text());
    put("device", repeated_device(card + ",netdev=" + name + (mac.empty() ? "" : ",mac=" + mac)));
    filter(name);
  }

  std::string usual_card() const { return q35_ ? "e1000e" : "e1000"; }

  /// QEMU's log has no local time.
  void take_clock(OptionValue value) {
    if (value.get("base") == "localtime") {
      value.set("base", local_time());
      tell(
          fmt::format("-rtc base=localtime: base={} in its place, since QEMU's log has no local "
                      "time",
                      *value.get("base")));
    }
    put("rtc", value.text());
  }

  /// "nic,model=e1000" and "user,hostfwd=…", the older words for a card and its network.
  void take_net(OptionValue value) {
    const std::string kind = value.head();
    if (kind == "none") return put("nic", kind);
    value.remove("vlan");
    value.remove("name");
    (kind == "nic" ? cards_ : backends_).push_back(value);
  }

  /// Each card is at its own network, as with -nic.
  void join_networks() {
    if (cards_.size() != backends_.size())
      throw UsageError(
          "--live: -net: expected as many cards as networks; write -nic user,model=CARD in its "
          "place");
    for (std::size_t n = 0; n < cards_.size(); ++n) {
      OptionValue nic = backends_[n];
      if (const auto model = cards_[n].get("model")) nic.set("model", *model);
      if (const auto mac = cards_[n].get("macaddr")) nic.set("mac", *mac);
      take_nic(std::move(nic));
    }
  }

  void take_nic(OptionValue value) {
    if (value.head() == "none") return put("nic", "none");
    std::string card = value.get("model").value_or(usual_card());
    if (card == "virtio") card = "virtio-net-pci";
    const std::string mac = value.get("mac").value_or("");
    for (const char* const key : {"model", "mac", "id"}) value.remove(key);
    add_network(value.text(), card, mac);
  }

  void add_console(const std::string& backend) {
    OptionValue device(backend);
    out_.reads_input = backend.starts_with("stdio");
    device.set("id", "citcat-console");
    device.set("logfile", console_);
    put("chardev", device.text());
    put("serial", "chardev:citcat-console");
    has_console_ = true;
  }

  void take_serial(const std::string& value) {
    if (has_console_ || value == "none") return put("serial", value);
    if (is_one_of(value, {"stdio", "mon:stdio"})) return add_console("stdio,signal=off");
    if (value.starts_with("file:"))
      return add_console("file,path=" + escaped(whole_path(value.substr(5))));
    if (is_one_of(value, {"null", "vc", "pty"})) return add_console(value);
    has_console_ = true;  // the first port is somebody else's
    put("serial", value);
  }

  const std::vector<std::string>& given_;
  const std::string console_;
  const bool keeps_;
  bool is_micro_ = false, q35_ = false, is_small_ = false, nographic_ = false, bare_ = false;
  bool has_serial_ = false, has_parallel_ = false, has_monitor_ = false, has_network_ = false;
  bool has_console_ = false;
  unsigned disks_ = 0, networks_ = 0;
  std::vector<OptionValue> cards_, backends_;  ///< of -net
  std::set<std::string> floppies_;             ///< names of their images
  LiveCommand out_;
};

}  // namespace

LiveCommand live_command(const std::vector<std::string>& command, const std::string& console,
                         bool keeps) {
  return LiveMachine(command, console, keeps).run();
}

std::vector<std::string> with_kept_files(
    const std::vector<std::string>& command,
    const std::function<void(OptionValue& drive, const std::string& name)>& place) {
  std::vector<std::string> out = command;
  for (std::size_t n = 1; n < out.size(); ++n) {
    if (out[n - 1] != "-drive") continue;
    OptionValue drive(out[n]);
    const std::string file = drive.get("file").value_or("");
    if (!file.starts_with(kKeptFile)) continue;
    place(drive, file.substr(std::string_view(kKeptFile).size()));
    out[n] = drive.text();
  }
  return out;
}

std::vector<std::string> repeated_command(const std::vector<std::string>& live) {
  std::vector<std::string> out{live[0]};
  const auto put = [&out](const std::string& option, const std::string& value) {
    out.push_back("-" + option);
    out.push_back(value);
  };
  for (const EmulatorOption& option : emulator_options(live)) {
    const std::string value = option.value.value_or("");
    if (is_one_of(option.name, {"display", "vnc", "spice", "monitor", "qmp", "qmp-pretty", "mon",
                                "gdb", "pidfile", "S", "s", "curses", "sdl", "full-screen"}))
      continue;
    // The recorder has a backend of that name.
    if (option.name == "object" && value.starts_with("memory-backend-ram,id=citcat-ram,")) continue;
    if (option.name == "chardev") {
      put("chardev", "null,id=" + OptionValue(value).get("id").value_or("citcat-none"));
    } else if (option.name == "netdev") {
      put("netdev", "user,restrict=on,id=" + OptionValue(value).get("id").value_or("citcat-none"));
    } else if (is_one_of(option.name, {"serial", "parallel"})) {
      put(option.name, value == "none" || value.starts_with("chardev:") ? value : "null");
    } else {
      if (!option.name.empty()) out.push_back("-" + option.name);
      if (option.value) out.push_back(*option.value);
    }
  }
  put("display", "none");
  put("monitor", "none");
  return out;
}

std::string live_clock(const std::vector<std::string>& command) {
  constexpr const char* kUsual = "shift=5";
  const auto given = option_value(command, "icount");
  if (!given) return kUsual;
  OptionValue value(given->find('=') == std::string::npos ? "shift=" + *given : *given);
  const std::string shift = value.get("shift").value_or("");
  if (shift.empty() || shift == "auto")
    throw UsageError(fmt::format(
        "--live: -icount {}: expected a shift that is a number; write -icount {}", *given, kUsual));
  for (const char* const key : {"rr", "rrfile", "rrsnapshot"}) value.remove(key);
  return value.text();
}

}  // namespace citcat
