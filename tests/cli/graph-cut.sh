# A dump that was cut off makes the graph of what it holds, and is told.
mkdir dump
cat >dump/dump.json <<'END'
{"task": "statistics", "level": "mix", "framework": "pytorch", "data": {
 "Module.a.Linear.forward.0": {"input_args": [], "output": []},
 "Module.b.Linear.forward.0": {"input_args": [], 
END
echo '{"Module.a.Linear.forward.0": null, "Module.b.Linear.forward.0": null}' >dump/construct.json
echo '{}' >dump/stack.json
$MSPROBE graph_visualize -tp dump -o out | grep -c 'vis.db$'
