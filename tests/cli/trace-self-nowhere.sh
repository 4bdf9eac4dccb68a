$MSPROBE version --trace-self=/proc/nowhere/t.json
