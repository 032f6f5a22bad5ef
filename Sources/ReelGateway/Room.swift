// Room ReelGateway.
