# SPDX-License-Identifier: MIT
# A script of bash that uses what bash has of its own: jobs, traps, coprocesses, descriptors by number, limits.
set -m
trap 'echo "trapped $?"' EXIT
trap 'echo usr1' USR1
exec 7>&1 8< <(echo from substitution)
read -r line <&8
echo "$line" >&7
sleep 0.05 &
wait -n
echo "wait $?"
kill -USR1 $$
(exit 5)
echo "subshell $?"
coproc cat
echo hello >&"${COPROC[1]}"
read -r back <&"${COPROC[0]}"
echo "$back"
exec {COPROC[1]}>&-
sh -c 'kill -SEGV $$'
echo "segv $?"
sh -c 'kill -9 $$'
echo "kill $?"
for name in /proc/self/fd/*; do echo -n "${name##*/} "; done
echo
(
    ulimit -n 16
    ulimit -n
    echo few descriptors | cat
)
here=$(mktemp -d)
(
    ulimit -f 0
    echo big >"$here/file"
) 2>/dev/null
echo "file too large $?"
rm -rf "$here"
exit 3
