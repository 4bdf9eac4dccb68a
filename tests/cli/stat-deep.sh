# A million brackets are refused where the limit is passed.
{ printf '{"data": {"x":\n'; head -c 1000000 /dev/zero | tr '\0' '['; } >dump.json
$MSPROBE stat --tolerant .
