# What is wrong in a part of a dump is said; a part that stands in place of the dump is called one.
mkdir dump
echo '{"task": "statistics", "level": "mix", "framework": "pytorch", "data": {
 "Torch.a.0.forward": {"input_args": [], "output": []}}}' >dump/dump.json
echo '{"Torch.a.0.forward": "Torch.a.0.forward"}' >dump/construct.json
for dump in dump dump/dump.json dump/construct.json; do
    $MSPROBE graph_visualize -tp $dump -o out
    echo "exit $?"
done
printf '%0100000d' 0 | tr 0 '[' >map.yaml
$MSPROBE compare -tp dump/dump.json -gp dump/dump.json -o out -dm map.yaml
