"""The jaxpr as nodes: calls inlined, lowerings expanded, equal equations rolled up; its key."""
