// Room ReelClient.
