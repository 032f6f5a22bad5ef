// Room ReelCheck.
