# Modes that need a framework.
$MSPROBE compare -m offline_model -tp t -gp b
