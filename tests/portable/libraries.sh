#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds the libraries that the program is linked with, static, from Debian's sources, with the
# compiler of the portable build.
#   CC=.../cc HOST=x86_64-linux-gnu sh tests/portable/libraries.sh DIR
# DIR then has include/ and lib/. A library that is there already is not built again.
set -e
: "${CC:?names the compiler, as make portable does}" "${HOST:?names the system, e.g. x86_64-linux-gnu}"
case $CC in /*) ;; *) CC=$PWD/$CC ;; esac
mkdir -p "${1:?the folder to build into}"
dir=$(cd "$1" && pwd)
export CC AR="${AR:-ar}" RANLIB="${RANLIB:-ranlib}"
export CFLAGS='-O2 -fPIC -w -D_FILE_OFFSET_BITS=64 -fvisibility=hidden'
mkdir -p "$dir/include" "$dir/lib" "$dir/source" "$dir/lists/partial"

sources='cjson expat libmicrohttpd libxlsxwriter libyaml ncurses sqlite3 zlib'
log=$dir/build.log

# Debian's own sources, with their signatures checked by apt; lists of a private folder, so that the
# machine's stay as they are.
apt_get() {
    apt-get -o Dir::Etc::sourcelist="$dir/sources.list" -o Dir::Etc::sourceparts=/dev/null \
        -o Dir::State::lists="$dir/lists" -o APT::Sandbox::User=root -o Dpkg::Use-Pty=0 "$@"
}
fetch() {
    # shellcheck disable=SC2086
    [ -n "$(ls "$dir/source"/*.dsc 2>/dev/null)" ] || (
        cd "$dir/source"
        release=$(. /etc/os-release && echo "$VERSION_CODENAME")
        mirror=$(apt-cache policy | sed -n "s|.* \(http[^ ]*\) $release/main .*|\1|p" | head -1)
        echo "deb-src ${mirror:-http://deb.debian.org/debian} $release main" >"$dir/sources.list"
        apt_get update
        apt_get source --download-only $sources
    )
}
unpack() { # name
    rm -rf "$dir/source/$1"
    (cd "$dir/source" && dpkg-source --no-check -x "$1"_*.dsc "$1")
    cd "$dir/source/$1"
}
# Compiles files side by side into one archive.
archive() { # NAME flags-and-files
    name=$1
    shift
    flags= files=
    for word; do
        case $word in *.c) files="$files $word" ;; *) flags="$flags $word" ;; esac
    done
    objects=
    for f in $files; do
        o=$(echo "$f" | tr / _).o
        # shellcheck disable=SC2086
        eval "$CC $CFLAGS $flags -c -o $o $f"
        objects="$objects $o"
    done
    # shellcheck disable=SC2086
    $AR rcs "$dir/lib/lib$name.a" $objects
}
headers() { cp "$@" "$dir/include/"; }

build_zlib() {
    unpack zlib
    archive z -D_LARGEFILE64_SOURCE=1 -DHAVE_UNISTD_H ./*.c
    headers zlib.h zconf.h
}
build_cjson() {
    unpack cjson
    archive cjson cJSON.c
    headers cJSON.h
}
build_libyaml() {
    unpack libyaml
    archive yaml -Iinclude -DYAML_VERSION_MAJOR=0 -DYAML_VERSION_MINOR=2 -DYAML_VERSION_PATCH=5 \
        "'-DYAML_VERSION_STRING=\"0.2.5\"'" src/*.c
    headers include/yaml.h
}
build_expat() {
    unpack expat
    cd expat
    printf '%s\n' '#define BYTEORDER 1234' '#define XML_CONTEXT_BYTES 1024' '#define XML_DTD 1' \
        '#define XML_NS 1' '#define HAVE_GETRANDOM 1' '#define XML_DEV_URANDOM 1' \
        '#define HAVE_MEMMOVE 1' '#define HAVE_UNISTD_H 1' '#define HAVE_MMAP 1' >expat_config.h
    archive expat -I. -DHAVE_EXPAT_CONFIG_H lib/xmlparse.c lib/xmlrole.c lib/xmltok.c
    headers lib/expat.h lib/expat_external.h
}
build_libxlsxwriter() {
    unpack libxlsxwriter
    archive xlsxwriter -Iinclude "-I$dir/include" -DNOCRYPT -DNOUNCRYPT src/*.c third_party/md5/md5.c \
        third_party/tmpfileplus/tmpfileplus.c third_party/minizip/zip.c third_party/minizip/ioapi.c
    cp -r include/xlsxwriter include/xlsxwriter.h "$dir/include/"
}
build_sqlite3() {
    unpack sqlite3
    # The compiler of this machine makes the tools that make the one file.
    (CC=gcc CFLAGS=-O1 && ./configure --disable-tcl --disable-readline && make sqlite3.c)
    archive sqlite3 -DSQLITE_ENABLE_COLUMN_METADATA -DSQLITE_ENABLE_FTS3 -DSQLITE_ENABLE_RTREE \
        -DSQLITE_ENABLE_DBSTAT_VTAB -DSQLITE_ENABLE_STMTVTAB -DSQLITE_USE_URI=1 \
        -DSQLITE_THREADSAFE=1 -DSQLITE_SECURE_DELETE -DSQLITE_MAX_VARIABLE_NUMBER=250000 \
        -DSQLITE_OMIT_LOAD_EXTENSION -DHAVE_USLEEP=1 -DHAVE_FDATASYNC=1 sqlite3.c
    headers sqlite3.h sqlite3ext.h
}
build_libmicrohttpd() {
    unpack libmicrohttpd
    ./configure --host="$HOST" --disable-https --disable-shared --enable-static --disable-doc \
        --disable-examples --disable-curl --disable-bauth --disable-dauth --disable-postprocessor
    make -C src/microhttpd libmicrohttpd.la
    cp src/microhttpd/.libs/libmicrohttpd.a "$dir/lib/"
    headers src/include/microhttpd.h
}
# Without a database of terminals on the machine, those that people have are built in.
build_ncurses() {
    unpack ncurses
    ./configure --host="$HOST" --with-build-cc=gcc --enable-widec --without-shared --with-normal \
        --without-debug --without-ada --without-cxx --without-cxx-binding --without-manpages \
        --without-tests --without-progs --disable-db-install --without-gpm --disable-home-terminfo \
        --with-default-terminfo-dir=/usr/share/terminfo \
        --with-terminfo-dirs=/etc/terminfo:/lib/terminfo:/usr/share/terminfo:/usr/lib/terminfo \
        --with-fallbacks=xterm,xterm-256color,screen,screen-256color,tmux,tmux-256color,linux,vt100 \
        --with-tic-path=/usr/bin/tic --with-infocmp-path=/usr/bin/infocmp \
        --disable-stripping --enable-overwrite --prefix=/usr CPPFLAGS=-D_GNU_SOURCE
    make -C include && make -C ncurses
    cp lib/libncursesw.a "$dir/lib/"
    headers include/curses.h include/ncurses_dll.h include/unctrl.h
    headers include/term.h 
}

fetch >"$log" 2>&1 || { tail -5 "$log" >&2; echo "portable: Debian's sources of $sources are not to be had" >&2; exit 1; }
for s in zlib $sources; do
    [ ! -e "$dir/$s.done" ] || continue
    echo "  LIB     $s"
    (set -e; "build_$s") >>"$log" 2>&1 || { tail -20 "$log" >&2; echo "portable: $s does not build; see $log" >&2; exit 1; }
    rm -rf "$dir/source/$s"
    : >"$dir/$s.done"
done
: >"$dir/done"
