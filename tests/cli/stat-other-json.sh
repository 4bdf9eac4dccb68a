# JSON of something else, and what is no JSON at all.
echo '{"name": "x", "version": 1}' >package.json
echo '[1, 2]' >list.json
printf 'PK\3\4' >x.pt
for f in package.json list.json x.pt; do
    $MSPROBE stat $f
    echo "exit $?"
done
