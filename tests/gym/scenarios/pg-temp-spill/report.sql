select count(distinct page) from visits;
