"""What can be proved about any model on given data."""
