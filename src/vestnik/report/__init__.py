"""What people look at: pages that need no other file, and figures."""
