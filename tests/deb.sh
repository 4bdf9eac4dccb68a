#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds the Debian package $B/msprobe_VERSION_ARCH.deb from what `make all` left in $B.
#   B=build VERSION=0.1.0 sh tests/deb.sh
#   CROSS=aarch64  the build is for that processor
set -e
B=${B:-build}
: "${VERSION:?say which version, as make deb does}"
tools=${CROSS:+$CROSS-linux-gnu-}
for tool in dpkg-deb dpkg-shlibdeps "${tools}strip"; do
    command -v "$tool" >/dev/null || { echo "make deb: no $tool here; apt-get install dpkg-dev binutils" >&2; exit 1; }
done
if "${tools}nm" -D "$B/libmsprobe.so" | grep -qE '__(asan|tsan|ubsan)_'; then
    echo 'make deb: a sanitizer build is not for others' >&2
    exit 1
fi
umask 022
# dpkg-shlibdeps looks for the libraries of the processor that is named so.
arch=$(dpkg-architecture ${CROSS:+-t "$CROSS-linux-gnu"} -q DEB_HOST_ARCH)
export DEB_HOST_ARCH="$arch"
work=$B/deb
root=$work/msprobe
deb=$B/msprobe_${VERSION}_$arch.deb
doc=$root/usr/share/doc/msprobe
rm -rf "$work"
mkdir -p "$root/DEBIAN" "$work/debian"

programs() { find "$root" -type f \( -name '*.so*' -o -path '*/bin/*' \); }
# The plugins of MPI are opened when that MPI is there: they ask for nothing.
linked() { programs | grep -v '_mpi_'; }

tidy_files() {
    programs | while IFS= read -r f; do "${tools}strip" --strip-unneeded -R .comment -R .note "$f"; done
    find "$root" -name '*.so*' -type f -exec chmod 644 {} +
    find "$root/usr/share/man" -type f -exec gzip -9n {} +
    rm -f "$doc/LICENSE"
}
copyright() {
    cat <<EOF
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: msprobe

Files: *
$(sed -n 's/^Copyright (c) /Copyright: /p' LICENSE)
License: Expat
$(sed '1,/^Copyright/d' LICENSE | sed '/./,$!d' | sed 's/^$/./; s/^/ /')
EOF
}
# The date is that of the last commit, so that one commit gives one package.
changelog() {
    date=$(git log -1 --format=%cD 2>/dev/null || date -R)
    printf 'msprobe (%s) unstable; urgency=medium\n\n  * See the history of the repository.\n\n -- The msprobe developers <msprobe@msprobe.invalid>  %s\n' \
        "$VERSION" "$date"
}
# What it is linked with, as Debian's own tool reads it from the program.
depends() {
    printf 'Source: msprobe\n\nPackage: msprobe\nArchitecture: any\n' >"$work/debian/control"
    elves=$(linked | sed "s|^$work/|-e|")
    # shellcheck disable=SC2086
    (cd "$work" && dpkg-shlibdeps -O -lmsprobe/usr/lib $elves 2>shlibdeps.log) |
        sed -n 's/^shlibs:Depends=//p'
}
control() {
    cat <<EOF
Package: msprobe
Version: $VERSION
Architecture: $arch
Maintainer: The msprobe developers <msprobe@msprobe.invalid>
Installed-Size: $(du -ks "$root/usr" | cut -f 1)
Depends: $depends
Suggests: mpich, openmpi-bin, python3
Section: science
Priority: optional
Description: finds out why a large-model training run is wrong or slow
 Compares the tensor dumps of two runs, across frameworks and without a mapping,
 and names the operator that introduces the difference. Records marks, ranges
 and communication calls of many ranks and names who makes the others wait.
 A page and a terminal viewer show graphs and timelines.
EOF
}
# Programs built with the package's libraries need this package.
shlibs() {
    for l in "$root"/usr/lib/lib*.so.0; do
        l=${l##*/}
        printf '%s 0 msprobe (>= %s)\n' "${l%.so.0}" "$VERSION"
    done
}
triggers() { echo 'activate-noawait ldconfig'; }
md5sums() { (cd "$root" && find usr -type f | LC_ALL=C sort | xargs -d '\n' md5sum); }

B=$B VERSION=$VERSION PREFIX=/usr DESTDIR=$root sh tests/install.sh install
tidy_files
copyright >"$doc/copyright"
changelog | gzip -9n >"$doc/changelog.gz"
depends=$(depends)
[ -n "$depends" ] || { cat "$work/shlibdeps.log" >&2; exit 1; }
control >"$root/DEBIAN/control"
shlibs >"$root/DEBIAN/shlibs"
triggers >"$root/DEBIAN/triggers"
md5sums >"$root/DEBIAN/md5sums"
dpkg-deb --root-owner-group -Zxz --build "$root" "$deb" >"$work/build.log"
echo "$deb"
