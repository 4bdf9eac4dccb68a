# A terminal shows control characters in a name instead of obeying them; a file gets them as they are.
command -v script >/dev/null || { echo 'no script(1) here'; exit 77; }
name=$(printf 'a\033[31mred\302\233')
mkdir "$name"
echo '{"task": "statistics", "level": "mix", "framework": "pytorch", "data": {}}' >"$name/dump.json"
script -qec "$MSPROBE stat '$name'" /dev/null </dev/null | head -1 | od -c | head -2
$MSPROBE stat "$name" | head -1 | od -c | head -2
