#!/bin/sh
# SPDX-License-Identifier: MIT
# Puts msprobe under $DESTDIR$PREFIX, or takes away what it put there.
#   B=build VERSION=0.1.0 PREFIX=/usr/local DESTDIR= sh tests/install.sh install|uninstall
#   CROSS=aarch64  the build is for that processor: its emulator runs what writes the completions
set -e
B=${B:-build}
PREFIX=${PREFIX:-/usr/local}
: "${VERSION:?say which version, as make install does}"
root=${DESTDIR:-}$PREFIX

# Public headers; each keeps its folder, so '#include "probe/base/err.h"' works with
# -I$PREFIX/include/msprobe.
headers='probe/base/err.h probe/probe.h probe/dumper.h
         mstx/ms_tools_ext.h mstx/ms_tools_ext_mem.h mstx/mstx.h mstx/mstx.hpp mstx/mstx_device.h'
# Shared libraries; the soname is NAME.so.0.
libraries='libmsprobe libmstx'
# Under names that others look for, in a folder that is nobody's search path.
extras='libmsprobe_cli.so dropin/libms_tools_ext.so dropin/libmspti.so libmstx_hook.so libmstx_dlsym.so libmstx_memory.so'
[ ! -e "$B/python/mstx.so" ] || extras="$extras python/mstx.so
    python/auto/sitecustomize.py python/auto/msprobe_torch.py python/auto/msprobe_marks.py
    python/auto/msprobe_distributed.py python/auto/msprobe_functional.py
    python/auto/msprobe_collections.py python/auto/msprobe_settings.py python/auto/msprobe_mindspore.py"
for m in $(cd "$B" && find python/msprobe python/mstx.cpython-*.so -name '*.py' -o -name '_probe*.so' -o -name 'mstx.*.so' 2>/dev/null); do
    extras="$extras $m"
done
for hook in openmpi mpich; do
    [ ! -e "$B/libmstx_mpi_$hook.so" ] || extras="$extras libmstx_mpi_$hook.so"
done

for f in openmpi mpich; do
    [ ! -e "$B/libmsprobe_mpi_$f.so" ] || extras="$extras libmsprobe_mpi_$f.so"
done

# A pattern without a match stands for itself.
existing() {
    for f; do
        [ ! -e "$f" ] || printf '%s\n' "$f"
    done
}
manuals=$(existing */*.[135] */*/*.[135])

# Every path below $root that belongs to the installation, one per line.
files() {
    echo bin/msprobe
    for l in $libraries; do
        printf 'lib/%s\n' "$l.so.$VERSION" "$l.so.0" "$l.so"
    done
    for e in $extras; do echo "lib/msprobe/$e"; done
    echo lib/pkgconfig/msprobe.pc
    for h in $headers; do echo "include/msprobe/$h"; done
    for m in $manuals; do echo "share/man/man${m##*.}/${m##*/}"; done
    echo share/bash-completion/completions/msprobe
    echo share/zsh/site-functions/_msprobe
    echo share/fish/vendor_completions.d/msprobe.fish
    printf 'share/doc/msprobe/%s\n' README.md LICENSE
}

put() { # mode file path-below-root
    install -D -m "$1" "$2" "$root/$3"
}

pkgconfig() {
    cat <<EOF
prefix=$PREFIX
libdir=\${prefix}/lib
includedir=\${prefix}/include/msprobe

Name: msprobe
Description: finds out why a large-model training run is wrong or slow
Version: $VERSION
Libs: -L\${libdir} -lmsprobe
Libs.private: -lm -pthread
Cflags: -I\${includedir}
EOF
}

completion() { # shell
    ${CROSS:+"qemu-$CROSS-static"} "$B/msprobe" completion "$1"
}

# A file made by a command is whole or not there at all.
generate() { # path-below-root command...
    to=$root/$1
    shift
    mkdir -p "$(dirname "$to")"
    "$@" >"$to.tmp" || { rm -f "$to.tmp"; exit 1; }
    chmod 644 "$to.tmp"
    mv "$to.tmp" "$to"
}

install_all() {
    put 755 "$B/msprobe" bin/msprobe
    for l in $libraries; do
        put 755 "$B/$l.so" "lib/$l.so.$VERSION"
        ln -sf "$l.so.$VERSION" "$root/lib/$l.so.0"
        ln -sf "$l.so.0" "$root/lib/$l.so"
    done
    for e in $extras; do
        case $e in *.py) mode=644 ;; *) mode=755 ;; esac
        put $mode "$B/$e" "lib/msprobe/$e"
    done
    for h in $headers; do put 644 "$h" "include/msprobe/$h"; done
    for m in $manuals; do put 644 "$m" "share/man/man${m##*.}/${m##*/}"; done
    for d in README.md LICENSE; do put 644 "$d" "share/doc/msprobe/$d"; done
    generate lib/pkgconfig/msprobe.pc pkgconfig
    generate share/bash-completion/completions/msprobe completion bash
    generate share/zsh/site-functions/_msprobe completion zsh
    generate share/fish/vendor_completions.d/msprobe.fish completion fish
}

# The loader knows libraries by a cache.  What is put under DESTDIR is somebody else's to announce.
tell_loader() {
    [ -z "${DESTDIR:-}" ] || return 0
    PATH=$PATH:/usr/sbin:/sbin
    if ldconfig -N -v 2>/dev/null | grep -q "^$PREFIX/lib:" && ldconfig; then return; fi
    [ ! -e "$PREFIX/lib/libmsprobe.so.0" ] ||
        echo "the loader does not know $PREFIX/lib: programs linked with msprobe want LD_LIBRARY_PATH=$PREFIX/lib" >&2
}

# Folders that only msprobe has; the others are shared and stay.
own_folders() {
    files | sed -n 's|^\(include/msprobe/.*\)/[^/]*$|\1|p' | sort -ru
    echo include/msprobe/probe
    printf '%s\n' lib/msprobe/dropin lib/msprobe/python/auto lib/msprobe/python/msprobe/pytorch lib/msprobe/python/msprobe/mindspore lib/msprobe/python/msprobe/core \
        lib/msprobe/python/msprobe \
        lib/msprobe/python lib/msprobe
    echo include/msprobe
    echo share/doc/msprobe
}

uninstall_all() {
    find "$root/lib/msprobe/python" -name __pycache__ -exec rm -rf {} + 2>/dev/null || true
    files | while IFS= read -r f; do rm -f "$root/$f"; done
    own_folders | while IFS= read -r d; do
        [ ! -d "$root/$d" ] || rmdir "$root/$d" 2>/dev/null || true
    done
}

case ${1:-} in
install)
    install_all
    tell_loader
    ;;
uninstall)
    uninstall_all
    tell_loader
    ;;
*)
    echo "usage: sh tests/install.sh install|uninstall" >&2
    exit 2
    ;;
esac
