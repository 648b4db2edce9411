# A minimal Debian in a folder. Scripts that build or try citcat in one source this file, after
# private-apt.sh. They need root and debootstrap.

debian_roots=()

# debian_root_make ROOT SUITE: makes it, with /proc, terminals, and the lists of its packages.
debian_root_make() {
  local debian=$1 edition=$2 mirror
  mirror=$(private_apt_mirror "^($edition|bookworm|stable|oldstable)\$")
  [[ -n $mirror ]] || { echo "no mirror for $edition among this machine's apt sources" >&2; return 1; }
  debootstrap --variant=minbase "$edition" "$debian" "$mirror" || return
  debian_roots+=("$debian")
  mount -t proc proc "$debian/proc" && mount -t devpts devpts "$debian/dev/pts" || return
  cp /etc/resolv.conf "$debian/etc/" || return
  printf 'deb %s %s main\n' "$mirror" "$edition" >"$debian/etc/apt/sources.list"
  [[ $edition != bookworm ]] ||  # backports have a new enough QEMU
    printf 'deb %s bookworm-backports main\n' "$mirror" >>"$debian/etc/apt/sources.list"
  debian_root_run "$debian" 'apt-get -qq -o APT::Sandbox::User=root update'
}

# debian_root_run ROOT COMMANDS [NAME=VALUE...]: runs a shell in it, without the caller's environment.
debian_root_run() {
  local debian=$1 commands=$2
  shift 2
  chroot "$debian" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C HOME=/root \
    DEBIAN_FRONTEND=noninteractive "$@" bash -ec "$commands" </dev/null
}

# debian_root_tree ROOT TREE: puts what is committed in TREE into its folder /tree.
debian_root_tree() {
  mkdir -p "$1/tree" && git -C "$2" archive HEAD | tar -x -C "$1/tree"
}

# Unmounts what was mounted in all of them. Do this before you remove their folders.
debian_root_leave_all() {
  local debian
  for debian in "${debian_roots[@]}"; do umount -q "$debian/dev/pts" "$debian/proc" || true; done
}
