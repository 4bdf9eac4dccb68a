# Two records of one name: an error, or the later one.
cat >dump.json <<'END'
{"task": "statistics", "level": "L1", "data": {
"Torch.x.0.forward": {"output": [null]},
"Torch.x.0.forward": {}}}
END
$MSPROBE stat dump.json
echo "exit $?"
$MSPROBE stat --tolerant dump.json | grep -E 'records|values'
