"""HTTP to endpoints: one client, its connections, and what errors of endpoints mean."""
