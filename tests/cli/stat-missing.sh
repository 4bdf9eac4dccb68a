$MSPROBE stat nowhere/dump.json
