$MSPROBE selftest
