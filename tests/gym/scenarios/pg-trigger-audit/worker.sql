\set id random(1, 120000)
update orders set amount = amount + 1 where id = :id;
