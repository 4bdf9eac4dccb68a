# Stopped from outside: dies by the same signal and says nothing.  The program
# waits where it opens its log, a pipe without a reader.
exec 2>/dev/null # the shell has something to say about killed children
mkfifo log
for sig in INT TERM HUP; do
    MSPROBE_LOG=log env --default-signal=$sig "$MSPROBE" version 2>err &
    pid=$!
    # until its handlers are in place (bit 14: SIGTERM is caught)
    until grep -q '^SigCgt:.*[4-7c-f]...$' /proc/$pid/status; do sleep 0.01; done
    kill -$sig $pid
    wait $pid
    echo "$sig: $?"
    cat err
done
