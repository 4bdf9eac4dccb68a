$MSPROBE version now
