proc readValue {line} {
    return [exec cut -d: -f2 << $line]
}

set n 0
while 1 {
    readValue "value:$n"
    incr n
}
