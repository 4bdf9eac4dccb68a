# An editor has put a byte order mark before a dump: what it is, and how to take it off.
printf '\357\273\277{"task": "statistics", "data": {}}' >dump.json
$MSPROBE stat dump.json
tail -c +4 dump.json >plain.json
$MSPROBE stat plain.json | head -1
