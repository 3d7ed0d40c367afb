"""The side-by-side comparison that `benchmarks/compare.py` runs: peers, rows of work, and the page about them."""
