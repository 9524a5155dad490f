begin;
update counters set value = value + 1 where id = 1;
select pg_sleep(0.04);
commit;
