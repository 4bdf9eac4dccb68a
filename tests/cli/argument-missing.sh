$MSPROBE completion
