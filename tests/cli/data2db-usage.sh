# The words for yes and no are listed.
$MSPROBE data2db --data . --db . --micro_step maybe
