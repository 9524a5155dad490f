#!/bin/sh
while :
do
	"$1" "$2"
	echo "ledgerd ended with $?"
	sleep 0.2
done
