#!/bin/sh
# Migrations of the day: an index for the new search, made without CONCURRENTLY.
while :; do
  psql -q <<'SQL'
begin;
create index orders_search on orders (lower(note), customer);
select pg_sleep(0.5);
rollback;
SQL
done
