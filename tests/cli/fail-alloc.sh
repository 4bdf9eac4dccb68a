# Each allocation that fails is an error with words, never a crash.
n=1
while [ $n -le 120 ]; do
    MSPROBE_FAIL_ALLOC=$n $MSPROBE selftest >out 2>err
    s=$?
    case $s in 0 | 3) ;; *) echo "allocation $n: exit $s"; cat out err ;; esac
    n=$((n + 1))
done
MSPROBE_FAIL_ALLOC=1 $MSPROBE selftest | grep -c "not ok arena"
