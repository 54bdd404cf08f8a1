"""The tests: named after the rooms that they test."""
