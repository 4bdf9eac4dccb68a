$MSPROBE --stats version
