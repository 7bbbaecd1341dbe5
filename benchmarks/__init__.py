"""Paired measurements, printed as ratios within one run: never timed tests."""
