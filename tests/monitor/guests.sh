# Guests that people have: each is recorded, imported and verified. Sourced by tests/monitor/recordings;
# see scripts/test-monitor --guests.
#
# Packages of Debian are fetched. What is none is looked for in the folder $CITCAT_GUESTS, and named with
# where to get it where it is not there:
#
#   freedos.img     a floppy or disk with FreeDOS         https://www.freedos.org/download/
#   mikeos.flp      MikeOS's floppy                       https://mikeos.sourceforge.net/
#   xv6.img         xv6's disk, and fs.img beside it      https://github.com/mit-pdos/xv6-public
#   *.flat          of kvm-unit-tests, each a guest       https://gitlab.com/kvm-unit-tests/kvm-unit-tests

readonly guests_dir=$deps_dir/guests
readonly given_guests=${CITCAT_GUESTS:-}
# Of guests that do not end by themselves. The whole way of OVMF to its shell takes half a thousand millions.
readonly guest_instructions=${CITCAT_GUEST_INSTRUCTIONS:-20000000}
readonly guest_seconds=${CITCAT_GUEST_SECONDS:-1800}

# guest_package PACKAGE: unpacked into $guests_dir/PACKAGE
guest_package() {
  local target=$guests_dir/$1
  [[ ! -d $target ]] || return 0
  mkdir -p "$guests_dir"
  [[ -v private_apt_keyring ]] || . "$source_dir/scripts/private-apt.sh"
  private_apt_open "$target.apt" amd64 bookworm && private_apt_fetch "$target.apt" "$target" "$1" || return 1
  rm -rf "$target.apt"
}

# guest NAME CACHE START STOP COMMAND...: one recording, replayed and verified. Where $says is set, the guest
# must have said that on its console.
guest() {
  local name=$1 cache=$2 start=$3 stop=$4 asked=() status=0 ended
  shift 4
  [[ -z $start ]] || asked+=(--start "$start")
  [[ -z $stop ]] || asked+=(--stop "$stop")
  timeout "$guest_seconds" "$citcat" record --json --quit-at-stop --cache "$cache" "${asked[@]}" \
    -o "$work/$name.bin.zst" -- "$@" </dev/null >"$work/$name.record" 2>"$work/$name.errors" || status=$?
  # Where the emulator does otherwise than processors, the recording ends and says why.
  ended=$(sed -n 's/.*the monitor: //p' "$work/$name.errors")
  if [[ $status -ne 0 && -z $ended ]]; then
    fail "$name ($cache): not recorded: $(tail -n 2 "$work/$name.errors")"
  elif [[ -n ${says:-} ]] && ! grep -q "$says" "$work/$name.console"; then
    fail "$name ($cache): expected $says on the console, found: $(tail -n 4 "$work/$name.console")"
  elif ! imports_and_verifies "$name"; then
    fail "$name ($cache): $(head -c 600 "$work/$name.verify") $(tail -n 2 "$work/$name.errors")"
  else
    ok "$name ($cache): match, $(number "$work/$name.record" instructions) instructions," \
      "$(number "$work/$name.record" interrupts) interrupts," \
      "$(number "$work/$name.record" external_changes) external changes," \
      "up to: ${ended:-$(sed -n 's/.*"end":"\([^"]*\)".*/\1/p' "$work/$name.record")}"
    rm -f "$work/$name".*
  fi
}

# bare NAME CACHE OPTION...: from reset, as far as is recorded of guests that do not end
bare() {
  local name=$1 cache=$2
  shift 2
  guest "$name" "$cache" reset "count:$guest_instructions" "$source_dir/scripts/monitor-qemu-x86_64" \
    -display none -no-reboot -snapshot "$@"
}

guest_memtest() {
  guest_package memtest86+ || { fail "memtest86+: not fetched"; return; }
  local bits
  for bits in ia32 x64; do
    bare "memtest-$bits" pentium -m 64 -kernel "$(find "$guests_dir/memtest86+" -name "*$bits.bin" | head -n 1)" \
      -append console=ttyS0
  done
}

# With a network: it asks for an address, and goes on to its menu.
guest_ipxe() {
  guest_package ipxe || { fail "ipxe: not fetched"; return; }
  bare ipxe i486 -m 128 -kernel "$(find "$guests_dir/ipxe" -name ipxe.lkrn | head -n 1)" \
    -netdev user,id=net -device e1000,netdev=net
}

guest_ovmf() {
  guest_package ovmf || { fail "ovmf: not fetched"; return; }
  bare ovmf none -m 256 -machine q35 -bios "$guests_dir/ovmf/usr/share/ovmf/OVMF.fd"
}

guest_grub() {
  build_grub_disk "$work/grub.img" || { fail "grub: not fetched"; return; }
  boot grub pentium address:7c00 grub.img
}

# The modules of virtio's disk and network, in the order in which they are loaded.
readonly virtio_modules=(virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk
  failover net_failover virtio_net)

# virtio_files ARCH: those that the kernel has, and their names in order, as make-initramfs takes files
virtio_files() {
  local module path
  : >"$work/order"
  for module in "${virtio_modules[@]}"; do
    path=$(find "$deps_dir/kernel-$1"/lib/modules/*/kernel -name "$module.ko" | head -n 1)
    [[ -n $path ]] || continue
    echo "$module.ko" >>"$work/order"
    printf '%s:/virtio/%s\n' "$path" "$module.ko"
  done
  printf '%s:/virtio/order\n' "$work/order"
}

# Debian's kernel with a virtio disk, and a client on the network that asks what answers on the host's side.
guest_debian() {
  local arch=$1 name=debian-$1 program=monitor-qemu cpu=pentium3 files says="$1 has an answer"
  [[ $arch == i386 ]] || program=monitor-qemu-x86_64 cpu=Conroe
  [[ -s $source_dir/build/monitor/$arch/citcat.ko ]] ||
    { echo "skip $name: run scripts/setup-monitor --amd64"; return; }
  cat >"$work/$name.sh" <<'GUEST'
#!/bin/sh
while read -r module; do insmod /virtio/$module; done </virtio/order
dd if=/dev/vda of=/tmp/x bs=64k count=8 2>/dev/null && md5sum /tmp/x
ifconfig eth0 10.0.2.15 up
[ "$(wget -q -O - http://10.0.2.100/ | tail -n 1)" = 3000 ] && [ -s /tmp/x ] && echo "$(cat /arch) has an answer"
GUEST
  printf '%s' "$arch" >"$work/arch"
  cat >"$work/answer" <<'ANSWER'
#!/bin/sh
while read -r line && [ ${#line} -gt 1 ]; do :; done
printf 'HTTP/1.0 200 OK\r\n\r\n'
seq 3000
ANSWER
  chmod +x "$work/answer"
  mapfile -t files < <(virtio_files "$arch")
  "$source_dir/scripts/make-initramfs" "$arch" "$work/$name.gz" "$work/$name.sh:/workload" \
    "$work/arch:/arch" "${files[@]}" ||
    { fail "$name: no initramfs"; return; }
  guest "$name" pentium '' '' "$source_dir/scripts/$program" -cpu "$cpu" -m 256 -nographic -nodefaults \
    -serial "file:$work/$name.console" -no-reboot -snapshot -kernel "$(ls "$deps_dir/kernel-$arch"/boot/vmlinuz-*)" \
    -initrd "$work/$name.gz" -drive "file=$work/disk.img,format=raw,if=virtio" \
    -netdev "user,id=net,guestfwd=tcp:10.0.2.100:80-cmd:$work/answer" -device virtio-net-pci,netdev=net \
    -append 'console=ttyS0 quiet memmap=64K$0x6000000 panic=-1 nokaslr'
}

# A program that a compiler made for x86-64-v2 (SSE4.2, POPCNT, CMPXCHG16B) of nothing but that level.
guest_x86_64_v2() {
  local name=x86-64-v2 says='^[0-9]\{6,\} '
  cat >"$work/$name.c" <<'PROGRAM'
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static uint32_t numbers[4096];
static char text[65536];

int main(void) {
  uint32_t seed = 1, bits = 0, sum = 0, largest = 0;
  for (unsigned i = 0; i < 4096; ++i) numbers[i] = seed = seed * 1664525 + 1013904223;
  for (unsigned round = 0; round < 20; ++round) {
    for (unsigned i = 0; i < 4096; ++i) {
      bits += (uint32_t)__builtin_popcount(numbers[i]);
      sum += numbers[i] * (numbers[(i + round) % 4096] >> 3);
      largest = numbers[i] > largest ? numbers[i] : largest;
    }
  }
  double product = 1;
  for (unsigned i = 0; i < 4096; ++i) product *= 1 + (double)(numbers[i] % 1000) / 1e6;
  memset(text, 'a', sizeof text - 1);
  text[60000] = 'b';
  unsigned __int128 wide = 0;
  for (unsigned i = 0; i < 1000; ++i) __atomic_add_fetch(&wide, (unsigned __int128)i << 60, __ATOMIC_SEQ_CST);
  printf("%u %u %u %.9f %zu %llx\n", bits, sum, largest, product, strcspn(text, "bcd"),
         (unsigned long long)(wide >> 64));
  return 0;
}
PROGRAM
  "${CC:-gcc}" -O3 -march=x86-64-v2 -mcx16 -static "$work/$name.c" -o "$work/$name.program" -latomic ||
    { fail "$name: not built"; return; }
  "$source_dir/scripts/make-initramfs" --workload "$work/$name.program" amd64 "$work/$name.gz" ||
    { fail "$name: no initramfs"; return; }
  guest "$name" pentium '' '' "$source_dir/scripts/monitor-qemu-x86_64" -cpu Nehalem -m 256 -nographic -nodefaults \
    -serial "file:$work/$name.console" -no-reboot -kernel "$(ls "$deps_dir"/kernel-amd64/boot/vmlinuz-*)" \
    -initrd "$work/$name.gz" -append 'console=ttyS0 quiet memmap=64K$0x6000000 panic=-1 nokaslr'
}

# given NAME FILE WHERE: whether the file is in $CITCAT_GUESTS; otherwise where to get it
given() {
  [[ -n $given_guests && -e $given_guests/$2 ]] && return
  echo "skip $1: no $2 in \$CITCAT_GUESTS; $3"
  return 1
}

guest_of_others() {
  local test
  ! given freedos freedos.img https://www.freedos.org/download/ ||
    bare freedos i486 -m 16 -boot order=ac -drive "file=$given_guests/freedos.img,format=raw,if=$(drive_of "$given_guests/freedos.img")"
  ! given mikeos mikeos.flp https://mikeos.sourceforge.net/ ||
    bare mikeos none -m 16 -drive "file=$given_guests/mikeos.flp,format=raw,if=floppy"
  ! given xv6 xv6.img https://github.com/mit-pdos/xv6-public ||
    bare xv6 pentium -m 512 -smp 1 -drive "file=$given_guests/xv6.img,index=0,media=disk,format=raw" \
      -drive "file=$given_guests/fs.img,index=1,media=disk,format=raw"
  local tests=("$given_guests"/*.flat)
  [[ -e ${tests[0]} ]] || { given kvm-unit-tests '*.flat' https://gitlab.com/kvm-unit-tests/kvm-unit-tests; return; }
  for test in "${tests[@]}"; do
    bare "kvm-unit-tests-$(basename "${test%.flat}")" none -m 128 -nodefaults -serial null \
      -device isa-debug-exit,iobase=0xf4 -kernel "$test"
  done
}

# A floppy has 2.88 million bytes at most.
drive_of() { [[ $(stat -c %s "$1") -le 2949120 ]] && echo floppy || echo ide; }

# test_guests [NAME]...: those named, or all of them
test_guests() {
  local name
  [[ $# -gt 0 ]] || set -- memtest ipxe ovmf grub debian-i386 debian-amd64 x86-64-v2 others
  for name in "$@"; do
    case $name in
      debian-*) guest_debian "${name#debian-}" ;;
      x86-64-v2) guest_x86_64_v2 ;;
      others) guest_of_others ;;
      memtest | ipxe | ovmf | grub) "guest_$name" ;;
      *) die "--guests: expected memtest, ipxe, ovmf, grub, debian-i386, debian-amd64, x86-64-v2 or others, found $name" ;;
    esac
  done
}
