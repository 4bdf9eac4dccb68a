#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs into a temporary root, uses what is there as somebody else would, and
# takes it away again.
#   B=build        what to install
B=${B:-build}
CC=${CC:-cc}
CXX=${CXX:-c++}
pc=${PKG_CONFIG:-pkg-config}
prefix=/opt/msprobe
scratch=$(mktemp -d "${TMPDIR:-/tmp}/msprobe-install-XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
root=$scratch/root
here=$root$prefix
rc=0
unset MAKEFLAGS MAKELEVEL MFLAGS

# check NAME COMMAND...: the command succeeds; what it said is shown when it does not.
check() {
    name=$1
    shift
    if "$@" >"$scratch/said" 2>&1; then
        echo "ok $name"
    else
        echo "not ok $name"
        sed 's/^/    /' "$scratch/said" | head -10
        rc=1
    fi
}
no_output() { # command...
    "$@" >"$scratch/output"
    cat "$scratch/output"
    [ ! -s "$scratch/output" ]
}
run_make() { make --no-print-directory -s "$1" B="$B" PREFIX=$prefix DESTDIR="$root"; }

flags() { # pkg-config option...
    PKG_CONFIG_PATH=$here/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root "$pc" "$@" msprobe
}

# ---- what is there ----------------------------------------------------------

tree_is_whole() {
    version=$(flags --modversion)
    missing=
    for f in bin/msprobe "lib/libmsprobe.so.$version" lib/libmsprobe.so.0 lib/libmsprobe.so \
        include/msprobe/probe/base/err.h share/bash-completion/completions/msprobe \
        share/zsh/site-functions/_msprobe share/fish/vendor_completions.d/msprobe.fish share/doc/msprobe/README.md share/doc/msprobe/LICENSE; do
        [ -s "$here/$f" ] || missing="$missing $f"
    done
    for m in */*.[135] */*/*.[135]; do
        [ ! -e "$m" ] || [ -s "$here/share/man/man${m##*.}/${m##*/}" ] || missing="$missing $m"
    done
    echo "missing:$missing"
    [ -z "$missing" ]
}
others_may_read() {
    no_output find "$root" \( -type f ! -perm -444 \) -o \( -type d ! -perm -555 \)
}
names_no_build_folder() {
    no_output grep -rlI -e "$scratch" -e "$(pwd)" "$here"
}
program_runs() {
    "$here/bin/msprobe" version | grep -F "$(flags --modversion)"
}

# ---- the library ------------------------------------------------------------

exported() { nm -D --defined-only "$here/lib/libmsprobe.so" | awk '{ print $3 }' | LC_ALL=C sort; }
symbols_are_listed() {
    grep -v '^#' tests/data/libmsprobe.symbols | LC_ALL=C sort >"$scratch/listed"
    exported >"$scratch/exported"
    diff "$scratch/listed" "$scratch/exported"
}
symbols_have_the_prefix() {
    no_output sh -c 'grep -v "^probe_" "$1" || :' sh "$scratch/exported"
}
needs_libc_alone() {
    readelf -d "$here/lib/libmsprobe.so" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' >"$scratch/needed"
    [ -s "$scratch/needed" ] &&
        no_output sh -c 'grep -vE "^(lib(c|m|pthread)\.so\.|ld-linux)" "$1" || :' sh "$scratch/needed"
}
soname_is_kept() {
    readelf -d "$here/lib/libmsprobe.so" | grep -F 'SONAME' | grep -F '[libmsprobe.so.0]'
}

# ---- a client ---------------------------------------------------------------

# Includes every header by its installed name and looks at every function; volatile, as a compiler
# knows that no function lies at NULL and would leave the library out.
client() {
    (cd "$here/include/msprobe" && find . -name '*.h' | sort | sed 's|^\./\(.*\)|#include "\1"|')
    echo '#include <stddef.h>'
    echo 'static void (*volatile all[])(void) = {'
    sed 's/.*/    (void (*)(void))&,/' "$scratch/exported"
    echo '};'
    echo 'int main(void) {'
    echo '    struct ms_err e = {MS_OK};'
    echo '    for (size_t i = 0; i < sizeof all / sizeof *all; i++)'
    echo '        if (all[i] == NULL) return 1;'
    echo '    return e.rc == MS_OK ? 0 : 1;'
    echo '}'
}
# shellcheck disable=SC2046,SC2086
builds_and_runs() { # compiler source
    $1 -Wall -Werror -o "$scratch/client" "$2" $(flags --cflags --libs) \
        -Wl,-rpath,"$here/lib" && "$scratch/client"
}
# shellcheck disable=SC2046
sample_builds_and_runs() {
    $CC -std=c17 -o "$scratch/two_dumps" samples/two_dumps.c $(flags --cflags --libs) -lm \
        -Wl,-rpath,"$here/lib" &&
        "$scratch/two_dumps" "$scratch/dumps" && "$here/bin/msprobe" stat "$scratch/dumps/clean"
}
prefix_may_move() {
    PKG_CONFIG_PATH=$here/lib/pkgconfig "$pc" --define-prefix --cflags msprobe |
        grep -F -- "-I$here/include/msprobe"
}

# Without DESTDIR, where the loader looks and where it does not.
readme_is_right() {
    cp -a /etc "$scratch/etc" && mkdir "$scratch/local" &&
        env CC="$CC" B="$B" pc="$pc" unshare -m sh -ec 'mount --bind "$1/etc" /etc
            mount --bind "$1/local" /usr/local
            make --no-print-directory -s install B="$B"
            $CC -o "$1/prog" "$1/client.c" $("$pc" --cflags --libs msprobe)
            "$1/prog"' sh "$scratch"
}
a_folder_of_its_own_is_told() {
    alone=$scratch/alone
    make --no-print-directory -s install B="$B" PREFIX="$alone" 2>"$scratch/told" &&
        grep -F "LD_LIBRARY_PATH=$alone/lib" "$scratch/told" &&
        make --no-print-directory -s uninstall B="$B" PREFIX="$alone" && no_output find "$alone" -type f
}

# ---- the end ----------------------------------------------------------------

nothing_is_left() {
    no_output find "$root" -type f -o -type l -o -path '*msprobe/*' -name '*msprobe*' -type d
}
strangers_stay() {
    mkdir -p "$here/share/doc/msprobe" "$here/lib" && echo x >"$here/share/doc/msprobe/note" &&
        echo x >"$here/lib/libother.so" && run_make install && run_make uninstall &&
        [ -f "$here/share/doc/msprobe/note" ] && [ -f "$here/lib/libother.so" ]
}

if nm -D "$B/libmsprobe.so" | grep -qE '__(asan|tsan|ubsan)_'; then
    echo 'skip install: a sanitizer build is not for others'
    exit 0
fi
check 'make install' run_make install
check 'the tree is whole' tree_is_whole
check 'others may read it' others_may_read
check 'nothing names the folder it was built in' names_no_build_folder
check 'the program runs' program_runs
check 'the library exports what is listed' symbols_are_listed
check 'what it exports has the prefix probe_' symbols_have_the_prefix
check 'the library needs libc alone' needs_libc_alone
check 'the library has its soname' soname_is_kept
client >"$scratch/client.c"
cp "$scratch/client.c" "$scratch/client.cpp"
check 'a C program builds and runs' builds_and_runs "$CC" "$scratch/client.c"
if command -v "$CXX" >/dev/null; then
    check 'a C++ program builds and runs' builds_and_runs "$CXX" "$scratch/client.cpp"
else
    echo "skip a C++ program: no $CXX here"
fi
check 'a sample builds and runs' sample_builds_and_runs
check 'the prefix may move' prefix_may_move
# What lies beside the program is found where it was installed, as it is in the build tree.
finds_its_parts() {
    "$here/bin/msprobe" doctor --python /nowhere >"$scratch/installed" && "$B/msprobe" doctor --python /nowhere >"$scratch/built" &&
        diff "$scratch/installed" "$scratch/built" && grep -q '^yes *recording' "$scratch/installed"
}
check 'the installed doctor finds what the built one finds' finds_its_parts
check 'bash takes the completion' bash -n "$here/share/bash-completion/completions/msprobe"
if unshare -m true 2>/dev/null; then
    check 'a program finds the library in /usr/local' readme_is_right
else
    echo "skip /usr/local: no mounts of one's own here"
fi
check 'a folder where the loader does not look is told' a_folder_of_its_own_is_told
check 'make uninstall' run_make uninstall
check 'nothing is left' nothing_is_left
check 'what others put there stays' strangers_stay
exit $rc
