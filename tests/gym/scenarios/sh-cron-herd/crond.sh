#!/bin/sh
# hourly jobs; all of them begin at the same second
cd "$1" || exit 1
while :
do
	for job in 1 2 3 4 5 6 7 8
	do
		(sort -k2 access.log | gzip -9 > "report$job.gz") &
	done
	wait
	sleep 0.3
done
