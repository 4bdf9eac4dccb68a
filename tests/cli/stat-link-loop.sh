# Links that lead back to themselves.
mkdir step0
ln -s rank0 step0/rank0
ln -s loop loop
$MSPROBE stat step0
echo "exit $?"
$MSPROBE stat loop
