# Neither a directory nor a file that may not be read; root may read everything.
[ "$(id -u)" -ne 0 ] || { echo "root may read everything"; exit 77; }
mkdir closed
echo '{"data": {}}' >dump.json
chmod 0 closed dump.json
$MSPROBE stat closed
echo "exit $?"
$MSPROBE stat dump.json
