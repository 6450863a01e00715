"""Model-check the namespace: clients, garbage collectors and sweepers run its shipped operations concurrently."""
