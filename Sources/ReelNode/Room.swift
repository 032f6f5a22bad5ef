// Room ReelNode.
