# The script is loaded and asked, as the shell does at a press of Tab.
command -v bash >/dev/null || { echo "no bash here"; exit 77; }
$MSPROBE completion bash >script
cat >ask <<'END'
compopt() { :; } # works only at a real prompt
source ./script
complete -p msprobe
ask() {
    COMP_WORDS=("$@")
    COMP_CWORD=$(($# - 1))
    COMPREPLY=()
    _msprobe
    echo "$*: ${COMPREPLY[*]}"
}
ask msprobe ver
ask msprobe version --s
ask msprobe version --threads = 
ask msprobe completion ''
ask msprobe completion z
ask msprobe help self
ask msprobe version --trace_self ''
END
bash --norc ask
