"""Findings one can trust: what would be found again, whether anything matters, and what holds on unseen rows."""
