$MSPROBE selftets
