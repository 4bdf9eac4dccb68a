# The script is well-formed and defines the function.
command -v zsh >/dev/null || { echo "no zsh here"; exit 77; }
$MSPROBE completion zsh >_msprobe
zsh -n _msprobe || exit
cat >ask <<'END'
compdef() { echo "compdef $*" }
_describe() { print -l -- $commands | grep version }
_arguments() { print -l -- "$@" | grep -E '^(-v|--trace|\*)' }
source ./_msprobe
words=(msprobe v) CURRENT=2 && _msprobe
words=(msprobe completion z) CURRENT=3 && _msprobe
END
zsh -f ask
