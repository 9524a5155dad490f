#!/bin/bash
# small jobs of a quiet machine: each minute is a second here
cd "$1" || exit 1
while sleep 1
do
	grep -q "took 95 ms" app.log || echo "nothing is slow"
	awk '{ sum += $4 } END { print sum / NR }' app.log > mean
	test -e stop && exit 0
	tar -czf backup.tgz app.log
	find . -name '*.tmp' -mmin +5 -delete
	pgrep -x no-such-daemon > /dev/null || true
	cmp -s mean mean.old || cp mean mean.old
done
