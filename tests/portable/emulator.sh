# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# Lets the kernel start programs of another processor; sourced, with ARCH=aarch64.
#   qemu             the emulator, or nothing where it is not installed
#   teach_kernel     registers it with the kernel (root) until this script ends, where nobody has yet;
#                    fails where that is not allowed
qemu=$(command -v "qemu-$ARCH-static")
formats=/proc/sys/fs/binfmt_misc

# Signature of an ELF file of 64 bits for aarch64, and the bits of it that count.
magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
forget() { echo -1 >"$formats/msprobe-$ARCH-$$"; }
# The flag F keeps the emulator open, so that it serves other root file systems too.
teach_kernel() {
    [ -e "$formats/register" ] || mount -t binfmt_misc binfmt_misc "$formats" || return 1
    ! grep -qs "$ARCH" "$formats"/qemu-* || return 0
    printf ':msprobe-%s-%s:M::%s:%s:%s:F' "$ARCH" $$ "$magic" "$mask" "$qemu" >"$formats/register" || return 1
    trap forget EXIT
    trap 'exit 130' INT TERM
}
