$MSPROBE help help
