// Command lines of machines whose runs are kept and repeated.

#include "cli/record/live_command.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/record/console_keys.h"
#include "cli/record/emulator_words.h"
#include "cli/record/side_file.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

using Words = std::vector<std::string>;

std::string joined(const Words& words) {
  std::string text;
  for (std::size_t n = 1; n < words.size(); ++n) text += (n == 1 ? "" : " ") + words[n];
  return text;
}

Words qemu(Words words) {
  words.insert(words.begin(), "qemu-system-x86_64");
  return words;
}

/// Without what every machine gets that does not say -nodefaults.
std::string live(Words words) {
  words.push_back("-nodefaults");
  return joined(live_command(qemu(words), "/s/console.log").command);
}

TEST(EmulatorWords, AreOptionsWithTheirValuesAndImages) {
  const auto options =
      emulator_options(qemu({"-m", "1G", "-nographic", "a.img", "--kernel", "-k", "-S"}));
  ASSERT_EQ(options.size(), 5u);
  EXPECT_EQ(options[0].value, "1G");
  EXPECT_EQ(options[1].name, "nographic");
  EXPECT_FALSE(options[1].value);
  EXPECT_EQ(options[2].name, "");
  EXPECT_EQ(options[2].value, "a.img");
  EXPECT_EQ(options[3].name, "kernel");
  EXPECT_EQ(options[3].value, "-k");
  EXPECT_EQ(options[4].name, "S");
}

TEST(EmulatorWords, HaveValuesWithDoubledCommas) {
  OptionValue value("user,id=a,,b,hostfwd=tcp::2222-:22");
  EXPECT_EQ(value.head(), "user");
  EXPECT_EQ(value.get("id"), "a,b");
  value.set("id", "c,d");
  value.remove("hostfwd");
  value.set("restrict", "on");
  EXPECT_EQ(value.text(), "user,id=c,,d,restrict=on");
}

TEST(LiveCommand, MakesASessionOfANameThatNothingHas) {
  namespace fs = std::filesystem;
  const fs::path before = fs::current_path(), folder = fs::temp_directory_path() / "citcat-names";
  fs::create_directories(folder / "live.session");
  fs::current_path(folder);
  EXPECT_EQ(default_session(), "live-2.session");
  EXPECT_EQ(default_recording(), "recording.citcat");
  fs::current_path(before);
  fs::remove_all(folder);
}

TEST(LiveCommand, TakesTheOlderWordForNoNetwork) {
  EXPECT_EQ(live({"-net", "none"}), "-nic none -nodefaults -monitor none");
}

TEST(LiveCommand, PutsEverythingFromOutsideBehindWhatTheLogHolds) {
  const struct {
    Words given;
    const char* expected;
  } cases[] = {
      {{"/d/a,b.img"},
       "-drive file=/d/a,,b.img,if=none,id=citcat-disk0-image,snapshot=on -drive "
       "driver=blkreplay,if=none,image=citcat-disk0-image,id=citcat-disk0 -device "
       "ide-hd,drive=citcat-disk0,bus=ide.0,unit=0 -nodefaults -monitor none"},
      {{"-M", "q35", "-cdrom", "/d/c.iso"},
       "-M q35 -drive file=/d/c.iso,if=none,id=citcat-disk0-image,readonly=on -drive "
       "driver=blkreplay,if=none,image=citcat-disk0-image,id=citcat-disk0,readonly=on -device "
       "ide-cd,drive=citcat-disk0,bus=ide.2,unit=0 -nodefaults -monitor none"},
      {{"-drive", "file=/d/v.qcow2,if=virtio,format=qcow2", "-snapshot"},
       "-drive file=/d/v.qcow2,format=qcow2,if=none,id=citcat-disk0-image,snapshot=on -drive "
       "driver=blkreplay,if=none,image=citcat-disk0-image,id=citcat-disk0 -device "
       "virtio-blk-pci,drive=citcat-disk0 -nodefaults -monitor none"},
      {{"-drive", "file=/d/n.img,if=none,id=root", "-device", "virtio-blk-device,drive=root"},
       "-drive file=/d/n.img,id=root-image,if=none,snapshot=on -drive "
       "driver=blkreplay,if=none,image=root-image,id=root -device virtio-blk-device,drive=root "
       "-nodefaults -monitor none"},
      {{"-fda", "/d/f.img", "-drive", "file=/d/g.img,if=none,id=g,format=raw", "-device",
        "floppy,drive=g"},
       "-drive file=/d/f.img,if=none,id=citcat-disk0,snapshot=on -device floppy,drive=citcat-disk0 "
       "-drive file=/d/g.img,id=g,format=raw,if=none,snapshot=on -device floppy,drive=g "
       "-nodefaults -monitor none"},
      {{"-drive", "if=pflash,format=raw,readonly=on,file=/o/CODE.fd", "-drive",
        "if=pflash,format=raw,file=/o/VARS.fd"},
       "-drive if=pflash,format=raw,readonly=on,file=/o/CODE.fd -drive "
       "if=pflash,format=raw,file=/o/VARS.fd,snapshot=on -nodefaults -monitor none"},
      {{"-nic", "user,model=virtio,mac=52:54:00:12:34:56,hostfwd=tcp::2222-:22"},
       "-netdev user,hostfwd=tcp::2222-:22,id=citcat-net0 -device "
       "virtio-net-pci,netdev=citcat-net0,mac=52:54:00:12:34:56 -object "
       "filter-replay,id=citcat-filter0,netdev=citcat-net0 -nodefaults -monitor none"},
      {{"-netdev", "user,id=n", "-device", "e1000,netdev=n"},
       "-netdev user,id=n -object filter-replay,id=citcat-filter0,netdev=n -device "
       "e1000,netdev=n -nodefaults -monitor none"},
      {{"-serial", "mon:stdio", "-serial", "null"},
       "-chardev stdio,signal=off,id=citcat-console,logfile=/s/console.log -serial "
       "chardev:citcat-console -serial null -nodefaults -monitor none"},
      {{"-serial", "file:/tmp/x", "-icount", "7"},
       "-chardev file,path=/tmp/x,id=citcat-console,logfile=/s/console.log -serial "
       "chardev:citcat-console -nodefaults -monitor none"},
      {{"-nographic"}, "-nodefaults -display none -monitor none"},
      {{"-pflash", "/d/vars.fd"},
       "-drive if=pflash,file=/d/vars.fd,snapshot=on -nodefaults -monitor none"},
      {{"-net", "nic,model=rtl8139,macaddr=52:54:00:00:00:01", "-net", "user,hostfwd=tcp::22-:22"},
       "-nodefaults -netdev user,hostfwd=tcp::22-:22,id=citcat-net0 -device "
       "rtl8139,netdev=citcat-net0,mac=52:54:00:00:00:01 -object "
       "filter-replay,id=citcat-filter0,netdev=citcat-net0 -monitor none"},
  };
  for (const auto& c : cases) EXPECT_EQ(live(c.given), c.expected);
}

TEST(LiveCommand, GivesAMachineWithDefaultsItsConsoleAndItsNetwork) {
  const LiveCommand live = live_command(qemu({"-nographic", "-kernel", "k"}), "/s/console.log");
  EXPECT_EQ(joined(live.command),
            "-kernel " + std::filesystem::absolute("k").string() +
                " -display none -monitor none -parallel null -chardev "
                "stdio,signal=off,id=citcat-console,logfile=/s/console.log -serial "
                "chardev:citcat-console -netdev user,id=citcat-net0 -device "
                "e1000,netdev=citcat-net0 -object "
                "filter-replay,id=citcat-filter0,netdev=citcat-net0");
  EXPECT_EQ(live.images, Words{std::filesystem::absolute("k").string()});
}

TEST(LiveCommand, RefusesWhatTheLogDoesNotHold) {
  const Words cases[] = {{"-blockdev", "driver=file,filename=x,node-name=y"},
                         {"-net", "user"},
                         {"-net", "nic"},
                         {"-readconfig", "a.cfg"},
                         {"-sd", "a.img"},
                         {"-hda", "fat:rw:folder"},
                         {"-drive", "file=nbd:localhost:10809"},
                         {"-drive", "file.filename=a.img,format=raw"},
                         {"-drive", "driver=raw,file.driver=file,if=virtio"},
                         {"-device", "nvme,drive=d,serial=1"},
                         {"-virtfs", "local,path=/,mount_tag=x"},
                         {"-device", "usb-host,vendorid=1"},
                         {"-device", "vfio-pci,host=0:1"},
                         {"-drive", "file=x,if=scsi"},
                         {"-drive", "file=x,if=none"},
                         {"-chardev", "stdio,id=x,mux=on"},
                         {"-loadvm", "x"}};
  for (const Words& words : cases)
    EXPECT_THROW((void)live_command(qemu(words), "c"), UsageError) << joined(qemu(words));
  EXPECT_THROW((void)live_clock(qemu({"-icount", "auto"})), UsageError);
  EXPECT_EQ(live_clock(qemu({"-icount", "7"})), "shift=7");
  EXPECT_EQ(live_clock(qemu({})), "shift=5");
}

TEST(LiveCommand, HasATimeThatTheLogHolds) {
  EXPECT_EQ(live({"-rtc", "base=utc,clock=vm"}),
            "-rtc base=utc,clock=vm -nodefaults -monitor none");
  const LiveCommand local = live_command(qemu({"-rtc", "clock=vm,base=localtime"}), "c");
  EXPECT_TRUE(joined(local.command).starts_with("-rtc clock=vm,base=20")) << joined(local.command);
  EXPECT_EQ(local.changes.size(), 1u);
}

TEST(LiveCommand, TypedKeysAreTheMachinesBesideThoseBehindControlA) {
  ConsoleKeys keys;
  std::string passed;
  for (const char key : std::string("a\x01\x01"
                                    "b\x01"
                                    "ac\x01"
                                    "hx\x03"))
    if (const auto byte = keys.take(key)) passed += *byte;
  EXPECT_EQ(passed,
            "a\x01"
            "b\x01"
            "cx\x03");
  EXPECT_FALSE(keys.asks_end());
  EXPECT_EQ(keys.take('\x01'), std::nullopt);
  EXPECT_EQ(keys.take('x'), std::nullopt);
  EXPECT_TRUE(keys.asks_end());
}

TEST(LiveCommand, IsRepeatedWithoutTheWorld) {
  const Words live =
      live_command(qemu({"-display", "gtk", "-serial", "stdio", "-serial", "pty", "-nodefaults",
                         "-qmp", "unix:q", "-nic", "tap,ifname=t", "-S", "-m", "1G"}),
                   "/s/console.log")
          .command;
  EXPECT_EQ(joined(repeated_command(live)),
            "-chardev null,id=citcat-console -serial chardev:citcat-console -serial null "
            "-nodefaults -netdev user,restrict=on,id=citcat-net0 -device "
            "e1000,netdev=citcat-net0 -object "
            "filter-replay,id=citcat-filter0,netdev=citcat-net0 -m 1G -display none -monitor none");
}

// Else QEMU has the card interrupt the guest wherever a run is taken up, which no log knows of.
TEST(LiveCommand, OfAKeptSessionHasNetworkCardsThatDoNotAnnounceThemselves) {
  const auto kept = [](const Words& options) {
    return joined(live_command(qemu(options), "c", true).command);
  };
  const std::string by_nic =
      kept({"-nodefaults", "-nic", "user,model=virtio,mac=52:54:00:00:00:01"});
  EXPECT_NE(by_nic.find("-device virtio-net-pci,netdev=citcat-net0,mac=52:54:00:00:00:01,"
                        "guest_announce=off"),
            std::string::npos)
      << by_nic;
  const std::string by_device =
      kept({"-device", "virtio-net-pci-non-transitional,guest_announce=on,netdev=n"});
  EXPECT_NE(by_device.find("-device virtio-net-pci-non-transitional,guest_announce=off,netdev=n"),
            std::string::npos)
      << by_device;
}

TEST(LiveCommand, HasUsbControllersWhoseFramesAreRepeated) {
  const auto of = [](const Words& options, bool keeps) {
    return joined(live_command(qemu(options), "c", keeps).command);
  };
  const auto has = [](const std::string& words, const char* text) {
    return words.find(text) != std::string::npos;
  };
  const Words ehci{"-device", "usb-ehci,id=u,bus=pci.0,maxframes=8", "-device",
                   "ich9-usb-uhci1,masterbus=u.0,firstport=0,addr=1d.0"};
  EXPECT_TRUE(has(of(ehci, false),
                  "-device piix3-usb-uhci,id=u,bus=pci.0 -device "
                  "ich9-usb-uhci1,addr=1d.0"))
      << of(ehci, false);
  const Words xhci{"-device", "qemu-xhci,id=x,p2=8", "-device", "usb-tablet,bus=x.0"};
  EXPECT_TRUE(has(of(xhci, false), "-device qemu-xhci,id=x,p2=8")) << of(xhci, false);
  EXPECT_TRUE(has(of(xhci, true), "-device piix3-usb-uhci,id=x -device usb-tablet,bus=x.0"))
      << of(xhci, true);
  // The machine's own controllers are those of its south bridge.
  EXPECT_TRUE(has(of({"-M", "q35", "-usb"}, false), "-device piix3-usb-uhci"));
  EXPECT_TRUE(has(of({"-M", "pc", "-usb"}, false), "-usb"));
  EXPECT_TRUE(has(of({"-M", "q35,usb=on"}, false), "-device piix3-usb-uhci -M q35"));
}

TEST(LiveCommand, OfAKeptSessionWritesToFilesOfTheSession) {
  const LiveCommand kept = live_command(
      qemu({"-nodefaults", "-hda", "/a.img", "-cdrom", "/b.iso", "-device", "e1000,netdev=n"}), "c",
      true);
  const std::string words = joined(kept.command);
  EXPECT_NE(words.find("file=citcat-session:state.qcow2"), std::string::npos) << words;
  EXPECT_NE(words.find("file=citcat-session:disk1.qcow2"), std::string::npos) << words;
  EXPECT_NE(words.find("file=/b.iso"), std::string::npos) << words;
  EXPECT_NE(words.find("-machine hpet=off"), std::string::npos) << words;
  EXPECT_NE(words.find("-device rtl8139,netdev=n"), std::string::npos) << words;
  EXPECT_EQ(words.find("snapshot=on"), std::string::npos) << words;
  ASSERT_EQ(kept.kept_files.size(), 2u);
  EXPECT_EQ(kept.kept_files[1].second, "/a.img");
  const std::string placed =
      joined(with_kept_files(kept.command, [](OptionValue& drive, const std::string& name) {
        drive.set("file", "/s/" + name);
      }));
  EXPECT_EQ(placed.find("citcat-session:"), std::string::npos) << placed;
  EXPECT_NE(placed.find("file=/s/disk1.qcow2"), std::string::npos) << placed;
  // The recorder has a backend of that name.
  EXPECT_EQ(joined(repeated_command(kept.command)).find("memory-backend-ram"), std::string::npos);
  EXPECT_THROW((void)live_command(qemu({"-drive", "file=a,format=vmdk"}), "c", true), UsageError);
  const Words keyboard{"-usb", "-device", "usb-kbd"};
  EXPECT_THROW((void)live_command(qemu(keyboard), "c", true), UsageError);
  EXPECT_NO_THROW((void)live_command(qemu(keyboard), "c"));
}

}  // namespace
}  // namespace citcat
