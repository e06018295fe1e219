"""XLA's compilers through PJRT plugins: devices that `cpu` is not.

Loaded when a platform of it is asked for (`config.platforms`, `jit(backend=...)`, `devices(...)`);
nothing else imports it. `numjet.doctor` says which plugins are there.
"""
