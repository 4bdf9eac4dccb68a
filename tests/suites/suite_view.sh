#!/bin/sh
# SPDX-License-Identifier: MIT
# The terminal viewer: every screen by script at a fixed size against the expected
# text in tests/data/view, and on a real terminal (tmux) for what needs one: sizes,
# kinds of terminals, resizing, signals and how the terminal is left.
#   sh tests/suites/suite_view.sh --update     writes the expectations: read them before committing
#   UNDER="valgrind -q ..."             runs the viewer of every script under that, and no terminal
UNDER=${UNDER:-}
B=${B:-build}
PYTHON=${PYTHON:-/usr/bin/python3}
msprobe=$PWD/$B/msprobe
want=$PWD/tests/data/view
export LC_ALL=C.UTF-8
tmp=$(mktemp -d "${TMPDIR:-/tmp}/msprobe-view-XXXXXX") || exit 1
update=
[ "${1:-}" != --update ] || update=1
tmux="tmux -L msprobe-view-$$ -f /dev/null"
trap '$tmux kill-server 2>/dev/null; rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
rc=0
ok() { echo "ok $*"; }
bad() {
    echo "not ok $*"
    rc=1
}

# ---- fixtures: a comparison of two ranks, a capture of two ranks ----------------------
leaf='{"type":"torch.Tensor","dtype":"torch.float32","shape":[2],"Max":X,"Min":X,"Mean":X,"Norm":X,"requires_grad":true}'
put_rank() { # directory output
    mkdir -p "$1"
    one=$(echo "$leaf" | sed 's/X/1.0/g')
    out=$(echo "$leaf" | sed "s/X/$2/g")
    op() { echo "\"Torch.$1.0.forward\":{\"input_args\":[$one],\"output\":[$2]}"; }
    cat >"$1/construct.json" <<END
{"Module.m.Mlp.forward.0":null,"Torch.f.0.forward":"Module.m.Mlp.forward.0",
 "Torch.g.0.forward":"Module.m.Mlp.forward.0","Module.n.Norm.forward.0":null,
 "Torch.h.0.forward":"Module.n.Norm.forward.0","Torch.$3.0.forward":"Module.n.Norm.forward.0"}
END
    cat >"$1/dump.json" <<END
{"task":"statistics","level":"mix","framework":"pytorch","dump_data_dir":null,"data":{
 $(op f "$one"),$(op g "$out"),$(op h "$one"),$(op "$3" "$one")}}
END
    cat >"$1/stack.json" <<END
{"0":[["Torch.f.0.forward","Torch.g.0.forward"],["File m.py, line 1, in f, \n x = f(x)"]]}
END
}
for r in 0 1; do
    put_rank "$tmp/t/step0/rank$r" 9.0 new
    put_rank "$tmp/g/step0/rank$r" 1.0 old
done
"$msprobe" graph_visualize -tp "$tmp/t" -gp "$tmp/g" -o "$tmp/o" -fm >"$tmp/said" 2>&1 ||
    { cat "$tmp/said"; bad "a graph to look at"; exit 1; }
mv "$tmp"/o/*.vis.db "$tmp/pair.vis.db"
# Many layers of which the later ones differ: what unfolds there moves rows down and aside.
put_layers() { # directory first-that-differs
    mkdir -p "$1"
    awk -v leaf="$leaf" -v from="$2" -v dir="$1" '
        function record(name, parent, what) {
            tree = tree "," q name q ":" (parent ? q parent q : "null")
            data = data (data ? "," : "") q name q ":{" what "}"
        }
        function tensor(x,  s) { s = leaf; gsub(/X/, x, s); return "[" s "]" }
        BEGIN {
            q = "\""
            n = split("linear add layer_norm softmax", op, " ")
            for (i = 0; i < 12; i++) {
                layer = "Module.layers." i ".Layer.forward.0"
                tree = tree "," q layer q ":" q "Module.model.Decoder.forward.0" q
                for (k = 1; k <= n; k++)
                    record("Functional." op[k] "." i ".forward", layer,
                           q "input_args" q ":" tensor("1.0") "," q "output" q ":" tensor(1 + (i >= from) * (k + i) / 70))
                record("Module.layers." i ".Layer.parameters_grad", "",
                       q "weight" q ":" tensor(1 + (i >= from) * i * i / 7))
            }
            print "{" q "Module.model.Decoder.forward.0" q ":null" tree "}" >(dir "/construct.json")
            print "{\"task\":\"statistics\",\"level\":\"mix\",\"framework\":\"pytorch\",\"dump_data_dir\":null,\"data\":{" data "}}" >(dir "/dump.json")
        }'
}
put_layers "$tmp/lt" 5
put_layers "$tmp/lg" 99
"$msprobe" graph_visualize -tp "$tmp/lt" -gp "$tmp/lg" -o "$tmp/ol" >"$tmp/said" 2>&1 ||
    { cat "$tmp/said"; bad "a graph of many layers"; exit 1; }
mv "$tmp"/ol/*.vis.db "$tmp/layers.vis.db"
leaf=$(echo "$leaf" | sed 's/torch.float32/半精度 µ/')
for r in 0 1; do
    put_rank "$tmp/w/step0/rank$r" 9.0 new
done
"$msprobe" graph_visualize -tp "$tmp/w" -gp "$tmp/g" -o "$tmp/ow" -fm >"$tmp/said" 2>&1 ||
    { cat "$tmp/said"; bad "a graph with wide letters"; exit 1; }
mv "$tmp"/ow/*.vis.db "$tmp/wide.vis.db"
if command -v "$PYTHON" >/dev/null; then
    "$PYTHON" tests/gen/capture.py "$tmp/run" >/dev/null || exit 1
    "$msprobe" import "$tmp/run" >/dev/null || exit 1
fi

sim=
if [ -x "$B/tests/tool_sim" ]; then
    "$B/tests/tool_sim" "$tmp/sim" straggler 0.3 1 2 2 2 30 >/dev/null && "$msprobe" import "$tmp/sim" >/dev/null || exit 1
    sim=sim
fi

# ---- screens by script ------------------------------------------------------------------
screen() { # NAME PATH SIZE KEYS [options]
    name=$1 path=$2 size=$3 keys=$4
    shift 4
    printf '%s' "$keys" >"$tmp/keys"
    # Beside the fixtures, so that no path of this machine is on the screen.
    (cd "$tmp" && $UNDER "$msprobe" view --script keys --size "$size" "$@" "$path") >"$tmp/got" 2>"$tmp/error" ||
        cat "$tmp/error" >>"$tmp/got"
    sed -i 's/^ live; reading takes .*/ live/' "$tmp/got" # on a busy machine
    if [ -n "$update" ]; then
        mkdir -p "$want"
        cp "$tmp/got" "$want/$name.txt"
    elif cmp -s "$tmp/got" "$want/$name.txt"; then
        ok "screen $name"
    else
        bad "screen $name"
        diff "$want/$name.txt" "$tmp/got" | head -20
    fi
}
pair=pair.vis.db
screen findings-graph "$pair" 80x24 ''
screen findings-enter "$pair" 100x24 '<Enter>'
screen tree "$pair" 80x24 '2'
screen tree-open "$pair" 80x24 '2E'
screen tree-folded-again "$pair" 80x24 '2EjCgh'
screen tree-wide "$pair" 200x60 '2E'
screen tree-small "$pair" 40x10 '2E'
screen tree-golden "$pair" 80x24 '2E<Tab>jj'
screen tree-single "$pair" 80x24 '2Ev'
screen tree-matrix "$pair" 80x24 '2E}vv'
screen tree-next-error "$pair" 80x24 '2}'
screen tree-no-more-errors "$pair" 80x24 '2}}}}'
screen tree-items "$pair" 100x30 '2}i'
screen tree-items-none "$pair" 40x10 '2i'
screen tree-items-wide wide.vis.db 100x30 '2}i'
screen tree-items-filtered "$pair" 100x30 '2}i/norm'
screen tree-stack "$pair" 80x24 '2}S'
screen tree-flow "$pair" 80x24 '2}x'
screen tree-search "$pair" 80x24 '2/torch.h'
screen tree-search-none "$pair" 80x24 '2/nowhere<Enter>'
screen tree-filter "$pair" 80x24 '2\Torch -new'
screen tree-filter-wrong "$pair" 80x24 '2\shape:x<Enter>'
screen tree-troubles "$pair" 80x24 '2L'
screen tree-sorted "$pair" 80x24 '2Ess'
screen tree-sorted-open "$pair" 80x24 '2sssEjI'
screen tree-tagged "$pair" 80x24 '2Ejj '
screen tree-untagged "$pair" 80x24 '2Ejj U'
screen tree-rank "$pair" 80x24 '2r'
screen tree-help "$pair" 80x40 '2?'
screen tree-help-filtered "$pair" 80x24 '2?/error'
screen goto "$pair" 80x24 ':goto graph?rank=1&node=Torch.g.0.forward<Enter>'
screen goto-wrong "$pair" 80x24 ':goto graph?rank=7<Enter>'
screen unknown-command "$pair" 80x24 ':gto x<Enter>'
screen sql-graph "$pair" 80x24 '2:sql SELECT count(*) AS nodes FROM tb_nodes<Enter>'
screen sql-writes "$pair" 80x24 '2:sql DELETE FROM tb_nodes<Enter>'
screen no-timeline "$pair" 80x24 '3'
screen ascii "$pair" 80x24 '2E' --ascii
screen too-small "$pair" 39x9 ''
screen tiny "$pair" 1x1 '2jE'
screen tree-click "$pair" 80x24 '2E<Click:5,5>'
screen tree-click-opens "$pair" 80x24 '2<Click:2,4>'
screen tree-click-golden "$pair" 80x24 '2E<Click:9,60>'
screen tree-wheel "$pair" 80x24 '2E<WheelDown:9,60><WheelDown:1,1><WheelUp:1,1>'
screen click-on-screens "$pair" 80x24 '<Click:0,53>'
screen click-outside "$pair" 80x24 '2E<Click:23,4><Click:12,3><Drag:0,0>'
screen tree-next-suspect "$pair" 80x24 '2FF'
screen escape-leads-back "$pair" 80x24 '2E<Esc>'
screen set-rank "$pair" 80x24 '2:set rank 1<Enter>'
screen set-wrong "$pair" 80x24 '2:set colour red<Enter>'
screen line-edited "$pair" 80x24 ':goto overviewx<Backspace>'
screen bad-key "$pair" 80x24 '<Nokey>'
screen bad-size "$pair" 80by24 ''
screen missing nowhere 80x24 ''
if [ -d "$tmp/run" ]; then
    run=run
    screen findings-run "$run" 80x24 'j'
    screen findings-run-enter "$run" 80x24 'j<Enter>'
    screen time "$run" 80x24 '3'
    screen time-wide "$run" 200x60 '3'
    screen time-small "$run" 40x10 '3'
    screen time-zoomed "$run" 100x24 '3jwwww'
    screen time-panned "$run" 100x24 '3wwd'
    screen time-undo "$run" 80x24 '3www<Backspace><Backspace><Backspace>'
    screen time-slice "$run" 80x24 '3j..'
    screen time-slice-focus "$run" 80x24 '3j..f'
    screen time-partner "$run" 80x24 '3jj.]'
    screen time-collective-none "$run" 80x24 '3jc..c'
    screen time-step "$run" 80x24 '3}}'
    screen time-selected "$run" 80x24 '3j llllllll'
    screen time-sums "$run" 80x24 '3j lllllllli'
    screen time-search "$run" 80x24 '3/step 8<Enter>'
    screen time-closed "$run" 80x24 '3<Enter>'
    screen time-pinned "$run" 80x24 '3jjp'
    screen time-click "$run" 80x24 '3<Click:9,60>'
    screen time-click-closes "$run" 80x24 '3<Click:4,3>'
    screen time-drag "$run" 80x24 '3<Click:9,30><Drag:9,40><Drag:9,50>'
    screen time-drag-back "$run" 80x24 '3<Click:9,60><Drag:9,50><Drag:9,40>'
    screen time-right-edge "$run" 80x24 '3<Click:9,78>'
    screen time-map-dragged "$run" 80x24 '3www<Click:1,50><Drag:1,70>'
    screen time-help-filtered "$run" 80x24 '3?/slice<Enter>'
    screen report-click "$run" 80x24 '4<Click:6,4>'
    screen report-click-opens "$run" 80x24 '4<Click:6,4><Click:6,4>'
    screen live-click "$run" 80x24 '<Click:4,4>' --live
    screen time-ascii "$run" 80x24 '3' --ascii
    screen report-ranges "$run" 80x24 '4'
    screen report-collectives "$run" 80x24 '4<Tab>'
    screen report-ranks "$run" 80x24 '4<Tab><Tab>'
    screen report-breakdown "$run" 80x24 '4<Tab><Tab><Tab>'
    screen report-ranges-folded "$run" 80x24 '4c'
    screen report-ranges-sorted "$run" 80x24 '4sss'
    screen report-ranges-search "$run" 80x24 '4/step 2<Enter>nn'
    screen report-ranks-folded "$run" 80x24 '4<Tab><Tab>c'
    screen report-breakdown-turned "$run" 80x24 '4<Tab><Tab><Tab>ssI'
    screen report-enter "$run" 80x24 '4jj<Enter>'
    screen live "$run" 80x24 '' --live
    screen live-tick "$run" 80x24 '<Tick><Tick>' --live
    screen sql-run "$run" 80x24 '3:sql SELECT rank, events FROM ranks<Enter>'
    screen no-graph "$run" 80x24 '2'
    # Kernels of a profiler's trace that are collectives; rank 1 starts the second one late.
    for r in 0 1; do
        awk -v r=$r 'BEGIN {
            printf "{\"distributedInfo\":{\"rank\":%d,\"world_size\":2},\"traceEvents\":[", r
            for (i = 0; i < 3; i++)
                printf "%s{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclDevKernel_AllReduce_Sum_f32\",\"pid\":0,\"tid\":7,\"ts\":%d,\"dur\":%d,\"args\":{\"device\":0,\"stream\":7,\"correlation\":%d,\"Collective name\":\"allreduce\",\"In msg nelems\":1024,\"Out msg nelems\":1024,\"dtype\":\"Float\",\"Group size\":2,\"Process Group Name\":\"0\",\"Process Group Ranks\":\"[0, 1]\"}}", i ? "," : "", 1000000 + i * 5000 + (r == 1 && i == 1) * 900, 1100 + (i == 1) * 500 - (r == 1 && i == 1) * 900, i
            print "]}"
        }' >"$tmp/nccl$r.json"
    done
    "$msprobe" import -o "$tmp/nccl.db" "$tmp/nccl0.json" "$tmp/nccl1.json" >/dev/null || exit 1
    screen trace-collectives nccl.db 100x24 '4<Tab>'
    screen trace-collective nccl.db 100x24 '4<Tab><Enter>'
    screen trace-collective-in-time nccl.db 100x24 '3j..<Enter>'
else
    echo "skip screens of a run: no $PYTHON to make a capture"
fi

if [ -n "$sim" ]; then
    screen sim-collectives "$sim" 80x24 '4<Tab>'
    screen sim-collectives-small "$sim" 40x10 '4<Tab>'
    screen sim-ranks "$sim" 80x24 '4<Tab><Tab>'
    screen sim-ranks-small "$sim" 40x10 '4<Tab><Tab>'
    screen sim-ranges-small "$sim" 40x10 '4'
    screen sim-path "$sim" 110x32 '3xwwww'
    screen sim-ideal "$sim" 110x40 '3xXwwww'
    screen sim-path-hidden "$sim" 80x24 '3xXxX'
    screen sim-breakdown "$sim" 80x24 '4<Tab><Tab><Tab>'
    screen sim-breakdown-small "$sim" 40x10 '4<Tab><Tab><Tab>'
    screen sim-collective "$sim" 100x24 '4<Tab><Enter>'
    screen sim-collective-by-name "$sim" 100x24 '4/reduce<Enter><Enter>'
    screen sim-collective-small "$sim" 40x12 '4<Tab><Enter>'
    screen sim-collective-found "$sim" 100x24 '3/reduce<Enter>n<Enter>'
    screen sim-collective-let-go "$sim" 100x24 '4<Tab><Enter><Esc>'
    screen sim-collective-none "$sim" 100x24 '3j.<Enter>'
    screen sim-call-of-two "$sim" 100x24 '4<Tab>/recv<Enter><Enter>'
    screen sim-ticks "$sim" 120x24 '4<Tab><Enter>wwwwwwww'
    screen sim-finding "$sim" 100x24 '<Enter>'
    "$B/tests/tool_sim" "$tmp/wide" straggler 0.3 1 1 1 12 10 >/dev/null && "$msprobe" import "$tmp/wide" >/dev/null || exit 1
    screen sim-collective-of-many wide 100x24 '4<Tab><Enter>'
else
    echo "skip screens of a simulated cluster: no $B/tests/tool_sim"
fi

# ---- tables: of a comparison, of curves, of memory, of two runs ---------------------------------
{
    echo 'NPU Name,Bench Name,NormRelativeErr,MaxAbsErr,Result,Err_message'
    awk 'BEGIN { for (i = 0; i < 40; i++) printf "Module.layers.%d.fc.Linear.forward.0.output.0,Module.layers.%d.fc.Linear.forward.0.output.0,%g%%,%g,%s,\n", i, i, (i * 7 % 41) / 10, i / 1000, (i * 7 % 41 > 35 ? "error" : i * 7 % 41 > 30 ? "warning" : "pass") }'
} >"$tmp/compare_result_1.csv"
table=compare_result_1.csv
screen table "$table" 80x24 'j'
screen table-small "$table" 40x10 '<Right><Right>'
screen table-sorted "$table" 100x24 '<Right><Right>s'
screen table-sorted-up "$table" 100x24 '<Right><Right>sI'
screen table-failing "$table" 100x24 'F'
screen table-filter "$table" 100x24 '/layers.7.<Enter>'
screen table-filter-none "$table" 80x24 '/nowhere<Enter>'
screen table-row "$table" 80x24 'G<Enter>'
screen table-help "$table" 80x40 '?'
screen table-click "$table" 80x24 '<Click:4,5>'
screen table-none "$pair" 80x24 '6'
# A curve that ends, one that moves before the gradient jumps, and quiet ones.
put_monitor() { # FOLDER
    mkdir -p "$1/Dec01_10-00-00-rank0-12345"
    for metric in actv grad_unreduced grad_reduced; do
        awk -v metric=$metric 'BEGIN {
            print "vpp_stage,name,step,norm"
            n = split("embed layers.0 layers.1 head", name, " ")
            for (step = 0; step < 40; step++)
                for (i = 1; i <= n; i++) {
                    v = 1 + i / 10 + step % 3 / 100
                    if (metric == "actv" && i == 2 && step >= 28) v *= 40
                    if (metric ~ /grad/ && step == 30) v *= 300
                    if (metric == "actv" && i == 4 && step >= 33) v = "nan"
                    print "0," name[i] "," step "," v
                }
        }' >"$1/Dec01_10-00-00-rank0-12345/${metric}_0-39.csv"
    done
}
put_monitor "$tmp/monitor"
screen trend-findings monitor 100x24 ''
screen trend-enter monitor 100x24 '<Enter>'
screen trend-table monitor 120x24 '6F'
cat >"$tmp/memory_block.csv" <<'END'
start_time_stamp,end_time_stamp,device_addr,stream_id,pool_type,size,actual_peak_memory,file_name,line_num,type,tag,is_persistent,is_small
1,9,0x1000,0,0,4096,4096,net.py,3,kWeight,Dense,1,0
2,5,0x3000,0,0,65536,69632,net.py,7,kTemp,MatMul,0,0
END
screen memory memory_block.csv 100x16 ''
if [ -n "$sim" ]; then
    "$B/tests/tool_sim" "$tmp/before" clean 0 1 2 2 2 30 >/dev/null && "$msprobe" import "$tmp/before" >/dev/null || exit 1
    screen runs-table "$sim" 120x24 '' -gp before
    screen runs-in-time "$sim" 100x24 'jt' -gp before
fi
for r in 500 900; do # two traces without a step: no table says what is slower, and their times are shown
    printf '{"traceEvents":[{"ph":"X","name":"work","pid":0,"tid":1,"ts":100,"dur":%s}]}' $r >"$tmp/stepless$r.json"
done
screen runs-without-steps stepless500.json 80x24 '3' -gp stepless900.json

# ---- matching by hand, exporting -----------------------------------------------------------
cp "$tmp/pair.vis.db" "$tmp/work.vis.db"
work=work.vis.db
screen match "$work" 100x24 '2E<Tab>/torch.old<Enter> <Tab>/torch.new<Enter>M:write!<Enter>'
screen matches-saved "$work" 100x24 '2:save-matches<Enter>'
cp "$tmp/pair.vis.db" "$tmp/again.vis.db"
screen matches-applied again.vis.db 100x24 '2E:apply-matches work_0_0.vis.config<Enter>/torch.new<Enter>'
screen matches-elsewhere "$work" 80x24 ':save-matches<Enter>'
cp "$tmp/work.vis.db" "$tmp/asks.vis.db"
screen quit-asks asks.vis.db 100x24 '2E/torch.new<Enter>Mqq'
screen quit-asks-again asks.vis.db 100x24 '2E/torch.new<Enter>Mqqjq'
screen quit-command-asks asks.vis.db 100x24 '2E/torch.new<Enter>M:q<Enter>'
screen quit-when-written asks.vis.db 100x24 '2E/torch.new<Enter>M:w!<Enter>:q<Enter>'
screen quit-anyway asks.vis.db 100x24 '2E/torch.new<Enter>M:q!<Enter>'
screen match-undone "$work" 100x24 '2EZ/torch.new<Enter>'
[ -z "$update" ] || exit 0
[ -z "$UNDER" ] || exit $rc
pair=$tmp/pair.vis.db
printf '2E:export %s/tree.csv<Enter>:goto overview<Enter>:export %s/findings.csv<Enter>' "$tmp" "$tmp" >"$tmp/keys"
"$msprobe" view --script "$tmp/keys" "$pair" >/dev/null
printf '2E:save-screen %s/tree.svg<Enter>' "$tmp" >"$tmp/keys"
"$msprobe" view --script "$tmp/keys" "$pair" >/dev/null
if "$PYTHON" -c "
import xml.etree.ElementTree as tree
words = [e.text for e in tree.parse('$tmp/tree.svg').iter('{http://www.w3.org/2000/svg}text')]
assert any('Torch.g.0' in w for w in words), words
assert all(0 < float(e.get('textLength')) <= 80 * 8.4 for e in tree.parse('$tmp/tree.svg').iter('{http://www.w3.org/2000/svg}text'))
"; then ok "the picture of a screen is read by others"; else bad "the picture of a screen is read by others"; fi
if [ -n "$sim" ]; then
    if "$PYTHON" tests/suites/view_ticks.py "$msprobe" "$tmp/sim"; then ok "no two ticks have one label"; else bad "no two ticks have one label"; fi
fi
whole=1 # the reason why a screen has nothing to show, in one line of 80 columns
for path in "$pair" "$tmp/compare_result_1.csv" "$tmp/memory_block.csv" ${sim:+"$tmp/sim"}; do
    for screen in 2 3 4 5 6; do
        printf '%s' $screen >"$tmp/keys"
        "$msprobe" view --script "$tmp/keys" --size 80x24 "$path" >"$tmp/got"
        ! tail -n 2 "$tmp/got" | grep -q '^ n.* here; .*…\|^ not .*…' || whole=
    done
done
if [ -n "$whole" ]; then ok "each reason fits"; else bad "each reason fits"; fi
printf '<Right><Right>s:export %s/table.csv<Enter>' "$tmp" >"$tmp/keys"
"$msprobe" view --script "$tmp/keys" "$tmp/compare_result_1.csv" >/dev/null
if "$PYTHON" -c "
import csv
rows = list(csv.DictReader(open('$tmp/table.csv'))); was = list(csv.DictReader(open('$tmp/compare_result_1.csv')))
assert sorted(map(str, rows)) == sorted(map(str, was))
shares = [float(r['NormRelativeErr'][:-1]) for r in rows]
assert shares == sorted(shares, reverse=True), shares
"; then ok "an exported table has its rows in the order of the screen"; else bad "an exported table has its rows in the order of the screen"; fi
if "$PYTHON" -c "
import csv
rows = list(csv.DictReader(open('$tmp/tree.csv')))
assert {'Torch.g.0.forward', 'Module.m.Mlp.forward.0'} <= {r['target'] for r in rows}, rows
assert [r['state'] for r in rows if r['target'] == 'Torch.g.0.forward'] == ['E'], rows
assert list(csv.DictReader(open('$tmp/findings.csv')))[0]['kind'] == 'introduces'
"; then ok "exported CSV is read by others"; else bad "exported CSV is read by others"; fi

if [ -n "$sim" ]; then
    printf '4<Tab><Tab><Tab>:export %s/uses.csv<Enter>' "$tmp" >"$tmp/keys"
    "$msprobe" view --script "$tmp/keys" "$tmp/sim" >/dev/null
    "$msprobe" sql "$tmp/sim" "select rank, sum(computing_ns) * 1.0 / sum(end_ns - start_ns) as share,
        sum(waiting_ns) * 1.0 / sum(end_ns - start_ns) as waits from rank_steps group by rank" >"$tmp/uses.want"
    if "$PYTHON" -c "
import csv
got = {r['rank']: r for r in csv.DictReader(open('$tmp/uses.csv'))}
want = list(csv.DictReader(open('$tmp/uses.want'), delimiter='\t'))
assert len(want) == len(got) == 8, (want, got)
for r in want:
    g = got[r['rank']]
    assert abs(float(g['compute']) - float(r['share'])) < 0.01, (g, r)
    assert float(g['waiting']) <= float(r['waits']) + 0.01, (g, r)
    assert abs(sum(float(g[k]) for k in ('compute', 'communication', 'waiting', 'idle')) - 1) < 1e-5, g
"; then ok "the breakdown is of the recorded steps"; else bad "the breakdown is of the recorded steps"; fi
    printf '4<Tab>:export %s/calls.csv<Enter>' "$tmp" >"$tmp/keys"
    "$msprobe" view --script "$tmp/keys" "$tmp/sim" >/dev/null
    "$msprobe" sql "$tmp/sim" "select c.name, count(*) as calls, sum(c.bytes) as bytes, sum(j.waited_ns) as waits,
        (select last_rank from joins k where k.op = c.op group by last_rank order by count(*) desc limit 1) as last
        from comm_ops c left join joins j on c.rank = j.last_rank and c.comm_group = j.comm_group and c.seq = j.seq
        and c.class = 0 group by c.name" >"$tmp/calls.want"
    if "$PYTHON" -c "
import csv
got = {r['name']: r for r in csv.DictReader(open('$tmp/calls.csv'))}
want = list(csv.DictReader(open('$tmp/calls.want'), delimiter='\t'))
assert len(want) == len(got) == 3, (want, got)
for r in want:
    g = got[r['name']]
    assert (g['count'], g['bytes']) == (r['calls'], r['bytes']), (g, r)
    assert (int(g['waited_ns']), int(g['last_rank'])) == (int(r['waits'] or 0), int(r['last'] or -1)), (g, r)
"; then ok "collectives have the bytes, waits and last ranks of the records"; else
        bad "collectives have the bytes, waits and last ranks of the records"
    fi
fi
if [ -d "$tmp/run" ]; then
    if "$PYTHON" tests/suites/view_keys.py "$msprobe" viz/cmd/msprobe-view.1 "$pair" "$tmp/run" >"$tmp/said" 2>&1; then
        ok "help and manual list the same keys and commands"
    else
        bad "help and manual list the same keys and commands"
        head -20 "$tmp/said"
    fi
fi

# ---- without a terminal ----------------------------------------------------------------------
if "$msprobe" view "$pair" </dev/null >"$tmp/out" 2>&1; then
    bad "without a terminal it says what to do"
elif grep -q -- '--script' "$tmp/out"; then
    ok "without a terminal it says what to do"
else
    bad "without a terminal it says what to do"
fi

# ---- on a terminal -----------------------------------------------------------------------------
if ! command -v tmux >/dev/null; then
    echo "skip the viewer on a terminal: tmux is not installed"
    exit $rc
fi
begin() { # SIZE TERM COMMAND
    $tmux new-session -d -s v -x "${1%x*}" -y "${1#*x}" \
        "TERM=$2 LC_ALL=${LOCALE:-C.UTF-8} $3; echo left \$?; stty -a >$tmp/stty; TERM=dumb exec cat"
    until_shows "${4:-msprobe view}" >/dev/null
}
shown() { $tmux capture-pane -p -t v; }
until_shows() { # TEXT, for at most ten seconds
    tries=0
    until shown 2>/dev/null | grep -qF -- "$1"; do
        tries=$((tries + 1))
        [ $tries -lt 100 ] || return 1
        sleep 0.1
    done
}
press() { for k; do $tmux send-keys -t v "$k"; done; }
finish() { $tmux kill-session -t v 2>/dev/null; }
says() { # NAME TEXT: the screen shows it, soon
    if until_shows "$2"; then ok "$1"; else
        bad "$1: no '$2'"
        shown | head -24
    fi
}
# Within ten seconds the terminal shows what the script of these keys prints, letter by letter.
is_scripted() { # KEYS SIZE PATH
    printf '%s' "$1" >"$tmp/keys"
    "$msprobe" view --script "$tmp/keys" --size "$2" "$3" >"$tmp/script"
    tries=0
    until shown | sed 's/ *$//' | cmp -s - "$tmp/script"; do
        tries=$((tries + 1))
        [ $tries -lt 100 ] || return 1
        sleep 0.1
    done
}
differs() { # NAME
    bad "$1"
    shown | sed 's/ *$//' | diff - "$tmp/script" | head
}
view="$msprobe view"
$tmux new-session -d -s base cat # the server stays between sessions
for t in xterm-256color vt100 linux; do
    for size in 80x24 200x60; do
        begin $size $t "$view $pair"
        press 2 E
        says "$t $size shows the tree" 'Torch.h.0'
        if is_scripted 2E $size "$pair"; then ok "$t $size is what the script says"; else differs "$t $size is what the script says"; fi
        finish
    done
    begin 40x10 $t "$view $pair"
    press 2 E
    says "$t 40x10 has room for the tree" 'n.Norm'
    finish
done

# Unfolding, jumping and scrolling move rows and cells of what is there already.
for t in xterm-256color tmux-256color; do
    begin 110x30 $t "$view $tmp/layers.vis.db"
    keys= wrong=
    for k in 2 F l e e h h j j l j l G g l g e l h F E E; do
        press $k
        keys=$keys$k
        is_scripted "$keys" 110x30 "$tmp/layers.vis.db" && continue
        wrong=$k
        break
    done
    if [ -z "$wrong" ]; then ok "$t shows every key as the script does"; else differs "$t shows $keys as the script does"; fi
    finish
done

# What is sent is told by a pane that prints it in its own words.
colours() { $tmux capture-pane -p -e -t v | grep -o '\[[0-9;]*m' | tr -d '[m' | tr ';' '\n' | sort -un | tr '\n' ' '; }
within() { # NAME ALLOWED...: no other parameter of colours and attributes
    what=$1
    shift
    strange=
    for c in $(colours); do
        case " $* " in *" $c "*) ;; *) strange="$strange $c" ;; esac
    done
    if [ -z "$strange" ]; then ok "$what"; else bad "$what: also$strange"; fi
}
begin 80x24 xterm "$view $pair"
press 2 E
says "xterm of eight colours shows the tree" 'Torch.h.0'
within "and is sent eight colours alone" 0 1 4 7 22 24 27 30 31 32 33 34 35 36 37 39 40 41 42 43 44 45 46 47 49
finish
begin 80x24 xterm-256color "NO_COLOR=1 $view $pair"
press 2 E
says "with NO_COLOR it shows the tree" 'Torch.h.0'
within "and no colour at all" 0 1 4 7 22 24 27 39 49
finish

# A question that takes long, ended by a key that does nothing else.
begin 80x24 xterm-256color "$view $pair"
press 2
$tmux send-keys -t v -l ':sql with recursive c(x) as (select 1 union all select x + 1 from c) select max(x) from c'
press Enter
says "a question says that it is asked" 'a key ends it'
press q
says "a key ends it" 'the question was ended by a key'
press q
says "and the next key is one again" 'Findings'
finish

# The editor gets the terminal and gives it back.
cat >"$tmp/program.py" <<END
x = f(x)
END
sed "s|File m.py, line 1|File $tmp/program.py, line 1|" "$tmp/t/step0/rank0/stack.json" >"$tmp/stack" && mv "$tmp/stack" "$tmp/t/step0/rank0/stack.json"
printf '#!/bin/sh\necho "edits $1 $2"; read -r line; exit 0\n' >"$tmp/editor" && chmod +x "$tmp/editor"
begin 80x24 xterm-256color "EDITOR=$tmp/editor $view $tmp/t/step0/rank0"
press 2 E j j S
says "a stack says that e edits" 'e edit'
press e
says "e starts the editor at the line" "edits +1 $tmp/program.py"
press Enter
says "and the stack is back behind it" 'line 1, in f'
press q q q
says "the viewer ends as always" 'left 0'
finish

# What terminals send besides plain keys: none of its letters is a key.
raw() { $tmux send-keys -t v -l "$(printf '%b' "$1")"; }
begin 80x24 xterm-256color "$view $pair"
press 2
raw '\033q\033[I\033[O\033[24~\033[113;3u\033]11;rgb:0/0/0\007'
press /
raw '\033[200~softq\033[201~'
says "what is pasted is typed" '/softq'
press Escape
sleep 0.3
raw '\033[200~q\033[201~'
says "and is no command outside of a line" 'pasted text belongs into a line'
raw '\033['
sleep 0.05
raw 'F'
says "a sequence may come in two pieces" 'below 1-'
press 1
sleep 0.3
press Escape
sleep 0.3
says "and the viewer is still there" 'Findings'
press q
says "until it is told to end" 'left 0'
finish

# The mouse as terminals tell it (SGR): the word Tree, the row that is chosen, and the wheel.
point() { $tmux send-keys -t v -l "$(printf '\033[<%s' "$1")"; }
mouse_flags() { $tmux display-message -p -t v '#{mouse_any_flag}#{mouse_button_flag}#{mouse_standard_flag}#{mouse_sgr_flag}'; }
pid_of() { pgrep -P "$($tmux list-panes -t v -F '#{pane_pid}')"; }
begin 80x24 xterm-256color "$view --mouse $pair"
mouse() { # NAME TEXT EVENT: sent again where it was lost on the way
    sends=0
    while point "$3" && sends=$((sends + 1)) && [ $sends -lt 6 ]; do
        tries=0
        while [ $tries -lt 30 ]; do
            if shown | grep -qF -- "$2"; then
                ok "$1"
                return
            fi
            tries=$((tries + 1))
            sleep 0.1
        done
    done
    bad "$1: no '$2'"
    shown | head -24
}
mouse "a click on its name shows a screen" 'DefaultModel' '0;54;1M'
mouse "a click chooses a row" 'row 3 of' '0;4;5M'
mouse "the wheel moves" 'row 2 of' '64;4;3M'
press q q
says "it ends after the mouse was used" 'left 0'
if [ "$(mouse_flags)" = 0000 ]; then ok "and lets go of the mouse"; else bad "and lets go of the mouse: $(mouse_flags)"; fi
finish
begin 80x24 xterm-256color "$view --mouse $pair"
kill -SEGV "$(pid_of)"
until_shows 'left '
if [ "$(mouse_flags)" = 0000 ]; then ok "a crash lets go of the mouse too"; else bad "a crash lets go of the mouse too: $(mouse_flags)"; fi
finish

begin 39x9 xterm-256color "$view $pair" 'too small'
says "a terminal that is too small asks for room" 'is too small'
$tmux resize-window -t v -x 80 -y 24
says "and is used once it is larger" 'What is wrong'
finish

LOCALE=C
begin 80x24 xterm "$view $pair"
LOCALE=
press 2
says "where the locale is not UTF-8 it draws with ASCII" 'v   DefaultModel'
finish

begin 80x24 xterm-256color "$view $pair"
press 2 E
for s in 60x20 200x60 31x7 20x5 300x80 80x24 41x10 40x10 120x40 1x1 80x24; do
    $tmux resize-window -t v -x ${s%x*} -y ${s#*x}
done
sleep 0.3
says "a storm of sizes ends in a whole screen" 'Torch.h.0'
press q q
says "it can be left afterwards" 'left 0'
finish

# How the terminal is left: echo and line mode are on again.
is_sane() { sleep 0.2; grep -q '[^-]icanon' "$tmp/stty" && grep -q '[^-]echo ' "$tmp/stty"; }
for how in quit TERM HUP INT SEGV; do
    rm -f "$tmp/stty"
    begin 80x24 xterm-256color "$view $pair"
    press 2
    case $how in quit) press q q ;; *) kill -$how "$(pid_of)" ;; esac
    if until_shows 'left '; then
        if is_sane; then ok "after $how the terminal is as before"; else bad "after $how the terminal is as before"; fi
    else
        bad "after $how it ends"
        shown | tail -5
    fi
    finish
done
rm -f "$tmp/stty"
begin 80x24 xterm-256color "$view $pair"
kill -9 "$(pid_of)"
says "after kill -9 the shell goes on" 'left 137'
finish

$tmux new-session -d -s v -x 80 -y 24 "env LC_ALL=C.UTF-8 sh -i"
press "$view $pair" Enter
until_shows 'What is wrong'
press C-z
sleep 0.3
press 'echo in the' ' shell; fg' Enter
says "Ctrl-Z and fg bring the screen back" 'What is wrong'
press q
# What is typed while the terminal is given back is lost.
tries=0
until [ "$($tmux display-message -p -t v '#{pane_current_command}')" = sh ] || [ $tries -ge 100 ]; do
    tries=$((tries + 1))
    sleep 0.1
done
sleep 0.2
press 'echo ba""ck' Enter
says "and it can be left" back
finish

# ---- a job that runs ---------------------------------------------------------------------------------
cat >"$tmp/job.py" <<'END'
import os, sys, time
import mstx
step = 0
while os.path.exists(sys.argv[1]):
    whole = mstx.range_start(f"step {step}")
    time.sleep(0.2 if os.environ["RANK"] == "1" else 0.02)
    call = mstx.range_start("all_reduce", domain="communication")
    time.sleep(0.01)
    mstx.range_end(call, domain="communication")
    mstx.range_end(whole)
    step += 1
END
grows() { # the step of rank 0, once it is above the one given
    tries=0
    until now=$(shown | awk '$1 == "0" {print $2 + 0}') && [ "${now:-0}" -gt "$1" ]; do
        tries=$((tries + 1))
        [ $tries -lt 300 ] || return 1
        sleep 0.1
    done
    echo "$now"
}
if nm -D "$B/libmstx.so" | grep -q '__asan_init\|__tsan_init'; then
    echo "skip a job that runs: a sanitizer must come first in a process"
elif ! ls "$B"/python/mstx*.so >/dev/null 2>&1 || ! command -v "$PYTHON" >/dev/null; then
    echo "skip a job that runs: no module for Python was built"
else
    : >"$tmp/go"
    begin 100x24 xterm-256color "$view --live $tmp/job" 'waiting for a job'
    says "a job that has not begun is waited for" 'waiting for a job'
    for r in 0 1; do
        RANK=$r WORLD_SIZE=2 "$msprobe" run -o "$tmp/job" -- "$PYTHON" "$tmp/job.py" "$tmp/go" >"$tmp/job$r" 2>&1 &
        jobs="${jobs:-} $!"
    done
    tries=0
    until [ -d "$tmp/job/rank_0" ] && [ -d "$tmp/job/rank_1" ] || [ $tries -ge 300 ]; do
        tries=$((tries + 1))
        sleep 0.1
    done
    if first=$(grows 2) && grows "$first" >/dev/null; then ok "steps of a job that runs go up"; else
        bad "steps of a job that runs go up"
        shown
        cat "$tmp/job0"
    fi
    says "the rank that is slower is named" 'slowest: rank 1'
    says "what the ranks communicate is told" 'all_reduce'
    press Space
    says "it can be stopped" 'stopped'
    press Space
    rm -f "$tmp/go"
    wait $jobs
    says "a rank that has ended says so" 'ended'
    press Enter
    says "from there one goes to the timeline" 'whole run'
    press q q
    says "and out" 'left 0'
    finish
fi
if [ -d "$tmp/t" ]; then
    mkdir -p "$tmp/made"
    begin 80x24 xterm-256color "TMPDIR=$tmp/made $view $tmp/t --golden $tmp/g" 'What is wrong'
    kill -TERM "$(pid_of)"
    until_shows 'left '
    if [ -z "$(ls "$tmp/made" 2>/dev/null)" ]; then ok "SIGTERM leaves no graph behind"; else bad "SIGTERM leaves no graph behind"; fi
    finish
fi
# A dump of functions alone: its calls are listed, and a gradient that grows is no finding.
calls=$tmp/calls/step0/rank0
mkdir -p "$calls"
small='{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [], "Max": 0.45, "Min": 0.45, "Mean": 0.45, "Norm": 0.45}'
large='{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [64], "Max": 8.0, "Min": -8.0, "Mean": 0.1, "Norm": 529.0}'
printf '%s' '{"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": null, "data": {' \
    "\"Functional.relu.0.forward\": {\"input_args\": [$large], \"input_kwargs\": {}, \"output\": [$large]}," \
    "\"Functional.cross_entropy.0.backward\": {\"input\": [$small], \"output\": [$large]}}}" >"$calls/dump.json"
printf '{}' >"$calls/construct.json"
printf '{}' >"$calls/stack.json"
printf '%s' '1' >"$tmp/keys"
"$msprobe" view --script "$tmp/keys" "$tmp/calls" >"$tmp/script"
if grep -q 'Nothing wrong' "$tmp/script"; then ok "a dump of functions opens"; else bad "a dump of functions opens"; cat "$tmp/script"; fi
printf '%s' '2<Down><Right>' >"$tmp/keys"
"$msprobe" view --script "$tmp/keys" "$tmp/calls" >"$tmp/script"
if grep -q 'Functional.relu.0.forward' "$tmp/script"; then ok "its calls are listed"; else bad "its calls are listed"; cat "$tmp/script"; fi
"$PYTHON" tests/suites/key_storms.py "$B" --keys 1500 --seed "${SEED:-1}" || rc=1
exit $rc
