// Room ReelSQLite.
