# The last one wins, any unambiguous start is enough, - and _ are the same.
$MSPROBE version --thr 5 --threads=6 --trace_self a --trace-s=b --no_c && ls
