state=$1
printf 'cpu=1\nmem=2\nio=3\n' >"$state"

value_of() {
    grep "^$1=" "$state" | cut -d= -f2
}

check_all() {
    for name in cpu mem io; do
        value=$(value_of "$name")
        date +%s >"$state.$name"
        [ "$value" -gt 5 ] && echo "$name is high"
    done
}

while :; do
    check_all
done
