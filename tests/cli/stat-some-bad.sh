# Ranks that can be read are shown next to one that cannot.
for r in 0 1 2; do
    mkdir -p step0/rank$r
    echo '{"task": "statistics", "level": "L1", "data": {}}' >step0/rank$r/dump.json
done
echo '{"data": {' >step0/rank1/dump.json
$MSPROBE stat step0 | grep -v ^read
