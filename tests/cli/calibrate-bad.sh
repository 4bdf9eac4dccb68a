# A calibration with a noise below zero is refused with its place.
. "$CASES/compare-fixture"
dump a 3.0
dump t 3.0
echo '{"noise_floor": 1, "places": [{"step": null, "rows": {"x": -1}}]}' >noise.json
$MSPROBE compare -tp t/dump.json -gp a/dump.json --ext --noise-floor noise.json -o out
