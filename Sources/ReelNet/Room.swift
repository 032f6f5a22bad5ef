// Room ReelNet.
