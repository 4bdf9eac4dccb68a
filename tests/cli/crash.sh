# A crash tells where it was and which command it was, then dies by its signal.
case $("$MSPROBE" version -v) in
*sanitize*) echo "a sanitizer reports crashes itself" && exit 77 ;;
esac
exec 2>/dev/null # the shell has something to say about killed children
mkfifo log
MSPROBE_LOG=log "$MSPROBE" version --stats "two words" 2>err &
pid=$!
# until its handlers are in place (bit 14: SIGTERM is caught)
until grep -q '^SigCgt:.*[4-7c-f]...$' /proc/$pid/status; do sleep 0.01; done
kill -SEGV $pid
wait $pid
echo $?
head -2 err
grep -c '/msprobe(' err | sed 's/^[1-9][0-9]*$/frames/'
