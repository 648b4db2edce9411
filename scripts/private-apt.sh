# Debian packages without touching the system: sourced by scripts that need packages of another
# release or another architecture unpacked below build/. Nothing of the system's apt is read except
# its mirrors and transport settings, and nothing of it is changed.

readonly private_apt_keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# Prints the mirror of main for suites whose name matches the extended regular expression.
private_apt_mirror() {
  apt-get indextargets --no-release-info --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' |
    awk -v suites="$1" '$2 ~ suites && $3 == "main" { print $1; exit }'
}

# apt downloads as the user _apt, who may write nothing but what is given to him. private_apt_let_in DIR
# gives him the folders that he downloads into; where he cannot reach them apt says so and goes on as
# the caller, as it does for one who is not root.
private_apt_let_in() {
  [[ $EUID -eq 0 ]] && getent passwd _apt >/dev/null || return 0
  chown _apt "$1"/state/lists/partial "$1"/cache/archives "$1"/cache/archives/partial
}

# private_apt_open DIR ARCH SUITE...
# A private apt in DIR: its own sources, state and cache. Sets private_apt_options.
private_apt_open() {
  local dir=$1 arch=$2 suite mirror codename
  shift 2
  [[ -r $private_apt_keyring ]] || {
    echo "$private_apt_keyring is missing: install debian-archive-keyring" >&2
    return 1
  }
  codename=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")
  # The user's own configuration is no part of it, and would undo what is set here.
  unset APT_CONFIG
  rm -rf "$dir"
  mkdir -p "$dir"/{state/lists/partial,cache/archives/partial,empty}
  private_apt_let_in "$dir"
  : >"$dir/state/status"
  for suite in "$@"; do
    case $suite in
      *-security) mirror=$(private_apt_mirror '-security$') ;;
      *) mirror=$(private_apt_mirror "^($codename|stable|oldstable)\$") ;;
    esac
    [[ -n $mirror ]] || { echo "no mirror for $suite among this machine's apt sources" >&2; return 1; }
    printf 'deb [signed-by=%s] %s %s main\n' "$private_apt_keyring" "$mirror" "$suite"
  done >"$dir/sources.list"
  private_apt_options=(
    -o "Dir::Etc::SourceList=$dir/sources.list"
    -o "Dir::Etc::SourceParts=$dir/empty"
    -o "Dir::Etc::Preferences=$dir/empty/none"
    -o "Dir::Etc::PreferencesParts=$dir/empty"
    -o "Dir::State=$dir/state"
    -o "Dir::State::Status=$dir/state/status"
    -o "Dir::Cache=$dir/cache"
    -o "APT::Architecture=$arch"
    -o "APT::Architectures::=$arch"
    -o "APT::Default-Release="
    -o "Acquire::AllowInsecureRepositories=false"
    -o "Acquire::AllowWeakRepositories=false"
    -o "Acquire::Languages=none"
    -o "Acquire::Retries=3"
    -o "APT::Get::AllowUnauthenticated=false"
    -o "Debug::NoLocking=true"
  )
  apt-get -qq "${private_apt_options[@]}" -o APT::Update::Error-Mode=any update
}

# Prints the newest package whose whole name matches the extended regular expression.
private_apt_newest() {
  apt-cache "${private_apt_options[@]}" pkgnames | grep -E "^($1)\$" | sort -V | tail -1
}

# private_apt_unpack DIR TARGET
# Unpacks everything DIR has downloaded into TARGET, which takes its name last: an interrupted run
# leaves nothing that looks whole.
private_apt_unpack() {
  local dir=$1 target=$2 package
  rm -rf "$target" "$target.new"
  mkdir -p "$target.new"
  for package in "$dir"/cache/archives/*.deb; do
    dpkg-deb -x "$package" "$target.new" || return 1
  done
  mv "$target.new" "$target"
}

# private_apt_fetch DIR TARGET PACKAGE...
# Downloads the named packages (name or name/suite) and nothing else, and unpacks them into TARGET.
private_apt_fetch() {
  local dir=$1 target=$2
  shift 2
  (cd "$dir/cache/archives" && apt-get -qq "${private_apt_options[@]}" download "$@") || return 1
  private_apt_unpack "$dir" "$target"
}

# private_apt_fetch_with_dependencies DIR TARGET PACKAGE...
# The same for packages of this machine's own architecture, with those of their dependencies that
# the machine does not have installed.
private_apt_fetch_with_dependencies() {
  local dir=$1 target=$2
  shift 2
  cp /var/lib/dpkg/status "$dir/state/status"
  apt-get -qq -y "${private_apt_options[@]}" --no-install-recommends --download-only \
    install "$@" >/dev/null || return 1
  private_apt_unpack "$dir" "$target"
}
