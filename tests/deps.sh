#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs the packages that are missing, and says nothing when none is.
#   sh tests/deps.sh        what building and testing need
#   sh tests/deps.sh ci     also what analysis, fuzzing, manuals and comparisons need
#   sh tests/deps.sh portable   what `make portable` and `make wheel` need
#   sh tests/deps.sh cross      what `make CROSS=aarch64` and `make emulated` need
needed='gcc g++ libc6-dev make pkg-config libsqlite3-dev libcjson-dev libyaml-dev libxlsxwriter-dev libexpat1-dev zlib1g-dev libmicrohttpd-dev libncurses-dev check mpich libmpich-dev python3'
for_ci='dpkg-dev lintian openmpi-bin libopenmpi-dev gfortran lammps clang clang-format clang-tidy codespell cppcheck valgrind groff man-db zsh fish sqlite3 python3-dev python3-numpy python3-torch python3-openpyxl protobuf-compiler libjemalloc2 ocl-icd-libopencl1 pocl-opencl-icd chromium nodejs npm'
for_portable='dpkg-dev tcl ncurses-bin binutils python3-venv'
for_cross='gcc-aarch64-linux-gnu g++-aarch64-linux-gnu qemu-user-static'
libraries_for_cross='libsqlite3-dev libcjson-dev libyaml-dev libxlsxwriter-dev libexpat1-dev zlib1g-dev libmicrohttpd-dev libncurses-dev check libpython3-dev'
modules='sqlite3 libcjson yaml-0.1 xlsxwriter expat zlib libmicrohttpd ncursesw check'

# Another system: the names of packages are unknown here, those of the libraries are not.
other_system() {
    missing=
    for m in $modules; do
        ${PKG_CONFIG:-pkg-config} --exists "$m" 2>/dev/null || missing="$missing $m"
    done
    [ -z "$missing" ] && exit 0
    echo "deps: pkg-config does not find:$missing" >&2
    echo "deps: install the development files of SQLite 3, cJSON, libyaml, libxlsxwriter, expat, zlib, libmicrohttpd, ncurses and Check, then try again" >&2
    exit 1
}

# A package that another one stands in for counts as installed: pkgconf provides pkg-config.
# So does one whose triggers have not run yet.
installed() {
    dpkg-query -W -f '${Status} ${Package} ${Provides}\n' 2>/dev/null |
        sed -n -e 's/^install ok installed //p' -e 's/^install ok triggers-[a-z]* //p' | tr ', ' '\n\n' | sed 's/:.*//' | sort -u
}

# The run-time of clang's sanitizers carries the version of clang in its name.
clang_runtime() {
    version=$(clang --version 2>/dev/null | sed -n 's/.*clang version \([0-9]*\).*/\1/p' | head -1)
    [ -n "$version" ] ||
        version=$(apt-cache depends clang 2>/dev/null | sed -n 's/.*Depends: clang-\([0-9]*\)$/\1/p' | head -1)
    [ -z "$version" ] || echo "libclang-rt-$version-dev"
}

missing_of() { # packages
    here=$(installed)
    for p; do
        printf '%s\n' "$here" | grep -qxF "$p" || printf ' %s' "$p"
    done
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

fetch() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        -o DPkg::Lock::Timeout=120 "$@" >"$log" 2>&1
}

install_all() {
    if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
        echo "deps: not root and no sudo; have somebody run: apt-get install $*" >&2
        exit 1
    fi
    echo "deps: installing $*"
    log=$(mktemp)
    trap 'rm -f "$log"' EXIT
    fetch "$@" && return
    # Old lists of packages name versions that the server no longer has.
    as_root apt-get update >"$log" 2>&1 && fetch "$@" && return
    tail -20 "$log" >&2
    echo "deps: could not install $*" >&2
    exit 1
}

command -v dpkg-query >/dev/null && command -v apt-get >/dev/null || other_system
# Libraries of another processor, beside those of this one.
libraries_of() { # arch
    for p in $libraries_for_cross; do
        dpkg-query -W -f '${Status}\n' "$p:$1" 2>/dev/null | grep -q '^install ok' || printf ' %s' "$p:$1"
    done
}
install_cross() {
    dpkg --print-foreign-architectures | grep -qx arm64 || {
        as_root dpkg --add-architecture arm64
        as_root apt-get -qq update
    }
    # shellcheck disable=SC2046
    set -- $(missing_of $for_cross) $(libraries_of arm64)
    [ $# -eq 0 ] || install_all "$@"
}

wanted=$needed
case ${1:-} in
ci) wanted="$needed $for_ci" ;;
portable) wanted="$needed $for_portable" ;;
cross)
    install_cross
    exit
    ;;
esac
# shellcheck disable=SC2086
missing=$(missing_of $wanted)
# shellcheck disable=SC2086
[ -z "$missing" ] || install_all $missing
[ "${1:-}" = ci ] || exit 0
# Known only once clang is there.
# shellcheck disable=SC2046
missing=$(missing_of $(clang_runtime))
# shellcheck disable=SC2086
[ -z "$missing" ] || install_all $missing
