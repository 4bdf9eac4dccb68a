# A trace of the own run that any reader of JSON takes.
$MSPROBE selftest --trace-self=t.json >/dev/null || exit
grep -o "\"name\":\"database\"" t.json
grep -o "\"name\":\"selftest\"" t.json
if command -v python3 >/dev/null; then python3 -m json.tool t.json >/dev/null; fi
