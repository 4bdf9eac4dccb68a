$MSPROBE elephant
