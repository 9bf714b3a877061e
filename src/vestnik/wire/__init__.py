"""What travels: messages as frozen values."""
