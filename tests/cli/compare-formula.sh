# A name that a spreadsheet would run is text.
. "$CASES/compare-fixture"
dump t 2.0
sed -i "s/Torch.mul.0/=cmd.mul.0/" t/dump.json
cp -r t b
$MSPROBE compare -tp t/dump.json -gp b/dump.json -o "a dir+with signs" | hide
cut -d, -f1 a*/*.csv
