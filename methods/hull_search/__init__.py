"""The search for closest points within convex hulls of rows."""
