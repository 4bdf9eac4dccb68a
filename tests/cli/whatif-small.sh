# Two stages of which the second one takes twice as long.
cat >t.json <<'J'
[{"name":"thread_name","pid":0,"tid":0,"ph":"M","args":{"name":"PP rank 0, TP rank 0, compute"}},
{"name":"thread_name","pid":0,"tid":1,"ph":"M","args":{"name":"PP rank 0, TP rank 0, pp-comm"}},
{"name":"thread_name","pid":0,"tid":5,"ph":"M","args":{"name":"PP rank 1, TP rank 0, compute"}},
{"name":"thread_name","pid":0,"tid":6,"ph":"M","args":{"name":"PP rank 1, TP rank 0, pp-comm"}},
{"name":"forward-compute","pid":0,"tid":0,"ph":"X","ts":0,"dur":1000,"args":{"step":1}},
{"name":"forward-send","pid":0,"tid":1,"ph":"X","ts":1000,"dur":100,"args":{"step":1}},
{"name":"forward-recv","pid":0,"tid":6,"ph":"X","ts":1000,"dur":100,"args":{"step":1}},
{"name":"forward-compute","pid":0,"tid":5,"ph":"X","ts":1100,"dur":2000,"args":{"step":1}},
{"name":"backward-compute","pid":0,"tid":5,"ph":"X","ts":3100,"dur":4000,"args":{"step":1}},
{"name":"backward-send","pid":0,"tid":6,"ph":"X","ts":7100,"dur":100,"args":{"step":1}},
{"name":"backward-recv","pid":0,"tid":1,"ph":"X","ts":7100,"dur":100,"args":{"step":1}},
{"name":"backward-compute","pid":0,"tid":0,"ph":"X","ts":7200,"dur":2000,"args":{"step":1}}]
J
$MSPROBE whatif --without rank:1 --scale comm=2 t.json
$MSPROBE whatif --format json t.json | head -c 300
