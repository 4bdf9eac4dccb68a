MSPROBE_LOG=nowhere/log $MSPROBE version
