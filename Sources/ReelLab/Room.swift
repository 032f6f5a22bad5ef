// Room ReelLab.
