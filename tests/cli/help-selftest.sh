$MSPROBE help selftest
