// Room ReelSnapshot.
