# A file that a kill cut off: an error with its place, or what is complete.
printf '{\n "task": "statistics",\n "level": "L1",\n "data": {\n  "Torch.x.0.forward": {},\n  "To' >dump.json
$MSPROBE stat dump.json
echo "exit $?"
$MSPROBE stat --tolerant dump.json | head -3
