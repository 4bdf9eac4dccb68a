# Roots of graph/ and pynative/: a result lies where its step does, also where there is but one.
. "$CASES/compare-fixture"
for part in graph/step0 pynative/step3; do
    dump "t/$part/rank0" 1.0
    dump "b/$part/rank0" 1.0
done
$MSPROBE compare -tp t -gp b -o out >/dev/null
find out -type f | sort | hide
