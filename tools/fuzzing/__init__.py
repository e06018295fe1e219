"""Programs drawn at random, run in many ways that have to agree; see tools/fuzz.py."""
