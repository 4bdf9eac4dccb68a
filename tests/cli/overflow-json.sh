# The findings form, and a rank that cannot be read.
mkdir -p step0/rank0 step0/rank1
cat >step0/rank0/dump.json <<END
{"task": "nan_check", "level": "L1", "framework": "pytorch", "dump_data_dir": null, "data": {
"Functional.exp.0.forward": {"input_args": [], "input_kwargs": {}, "is_nan": 1, "output": []}}}
END
echo '{"data": {' >step0/rank1/dump.json
$MSPROBE overflow_check -i step0 -o out --format json
