#!/bin/sh
# keeps a copy of the log that others may read
cd "$1" || exit 1
while :
do
	cp orders.log orders.log.copy
	sync orders.log.copy
	rm orders.log.copy
done
