# Where scripts keep what they fetch and build: sourced by scripts that have set `source_dir`, sets
# `build_dir`. In a tree it is build/ below it. Installed, there is no tree: then it is in the
# user's cache, or where CITCAT_BUILD says.

if [[ -n ${CITCAT_BUILD:-} ]]; then
  build_dir=$CITCAT_BUILD
elif [[ -e $source_dir/CMakeLists.txt ]]; then
  build_dir=$source_dir/build
else
  build_dir=${XDG_CACHE_HOME:-$HOME/.cache}/citcat
fi
readonly build_dir
