# Mistakes of usage end with 2.
$MSPROBE stat
echo "exit $?"
$MSPROBE stat --format xml .
echo "exit $?"
$MSPROBE stat a b
