# Nothing found: no file, exit status 0, an empty list for programs.
mkdir -p step0/rank0
echo '{"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": null, "data": {}}' >step0/rank0/dump.json
$MSPROBE overflow_check -i step0 -o out --exit-code --format json
status=$?
[ ! -e out ] || echo 'a file was written'
exit $status
