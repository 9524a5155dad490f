#!/bin/sh
# Rows of the day: make, sort, count, pack.
rows() {
    i=0
    while [ $i -lt 400 ]; do
        seq 1 400
        i=$((i + 1))
    done
}

while :; do
    rows | awk '{ print $1 % 977, $1 }' | sort -k1,1n | uniq -c | gzip -9 > "$1/rows.gz"
done
