# What was found is written as mappings that can be edited and given back.
. "$CASES/align-fixture"
$MSPROBE compare -tp t/dump.json -gp b/dump.json -o out --write-mapping >/dev/null
cat out/data_mapping*.yaml
echo --
cat out/layer_mapping*.yaml
echo --
$MSPROBE compare -tp t/dump.json -gp b/dump.json -o again -dm out/data_mapping*.yaml | hide
