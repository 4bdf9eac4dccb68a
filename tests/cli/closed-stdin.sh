$MSPROBE version <&- 2>&-
