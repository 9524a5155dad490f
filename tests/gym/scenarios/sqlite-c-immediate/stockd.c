#include <sqlite3.h>
#include <unistd.h>

static __attribute__((noinline)) void reserve_stock(sqlite3 *database)
{
	if (sqlite3_exec(database, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
		return;
	sqlite3_exec(database, "UPDATE stock SET count = count - 1", NULL, NULL, NULL);
	usleep(60000);
	sqlite3_exec(database, "COMMIT", NULL, NULL, NULL);
}

int main(int argc, char **argv)
{
	sqlite3 *database;

	sqlite3_open(argv[1], &database);
	sqlite3_busy_timeout(database, 20000);
	sqlite3_exec(database, "PRAGMA synchronous = OFF", NULL, NULL, NULL);
	sqlite3_exec(database, "CREATE TABLE IF NOT EXISTS stock (count)", NULL, NULL, NULL);
	for (;;) {
		reserve_stock(database);
		usleep(1000);
	}
}
