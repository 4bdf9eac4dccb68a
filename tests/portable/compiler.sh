#!/bin/sh
# SPDX-License-Identifier: MIT
# Writes a script that compiles and links for an older C library: clang of PyPI's package ziglang.
#   ARCH=x86_64 GLIBC=2.28 sh tests/portable/compiler.sh ~/.cache/msprobe-portable/x86_64-2.28/cc
# ZIG names the program zig where it is installed; else the package is installed beside the script.
set -e
: "${ARCH:?}" "${GLIBC:?}" "${1:?the script to write}"
mkdir -p "$(dirname "$1")"
home=$(cd "$(dirname "$1")/.." && pwd)

# One place for both processors.
install_zig() {
    venv=$home/ziglang
    [ -x "$venv/bin/python" ] || "${PYTHON:-python3}" -m venv "$venv"
    "$venv/bin/python" -m ziglang version >/dev/null 2>&1 ||
        "$venv/bin/pip" -q --disable-pip-version-check install 'ziglang>=0.13' >&2
    "$venv/bin/python" -c 'import os, ziglang; print(os.path.join(os.path.dirname(ziglang.__file__), "zig"))'
}
ZIG=${ZIG:-$(install_zig)}
[ -x "$ZIG" ] || { echo "portable: no zig; pip install ziglang, or set ZIG to the program" >&2; exit 1; }

# The compiler remembers what it compiled by the source and its headers. The page that route.c takes in as
# bytes is none of these, so that file is compiled anew.
cat >"$1.tmp" <<EOF
#!/bin/sh
export ZIG_GLOBAL_CACHE_DIR=\${ZIG_GLOBAL_CACHE_DIR:-$home/zig-cache}
export ZIG_LOCAL_CACHE_DIR=\$ZIG_GLOBAL_CACHE_DIR
case " \$* " in
*" --archive "*) shift; exec '$ZIG' ar "\$@" ;;
*" web/serve/route.c "*) set -- "\$@" "-DWEB_PAGE_DATE=\$(date +%s%N)" ;;
esac
exec '$ZIG' cc -target $ARCH-linux-gnu.$GLIBC "\$@"
EOF
chmod +x "$1.tmp"
mv "$1.tmp" "$1"
