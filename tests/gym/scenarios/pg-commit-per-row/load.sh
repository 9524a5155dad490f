#!/bin/sh
# Imports readings, a transaction each.
for worker in 1 2 3; do
	yes "insert into readings (value) values (7);" | psql -q &
done
wait
