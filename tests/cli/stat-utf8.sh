printf '{"data": {\n"Torch.\377.0.forward": {}}}' >dump.json
$MSPROBE stat dump.json
