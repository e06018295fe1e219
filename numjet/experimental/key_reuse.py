"""numjet.experimental.key_reuse: keys that are used twice.

`numjet.debug_key_reuse(True)`, a context, or `config.update("debug_key_reuse", True)`, for the
thread that sets it, makes the second use of a key raise `errors.KeyReuseError`. Drawing from a key
and splitting it are uses; `random.fold_in`, `key_data` and `clone` are none. There are no names
here, as in JAX.

>>> import numjet as nj
>>> with nj.debug_key_reuse(True):  # doctest: +IGNORE_EXCEPTION_DETAIL
...     key = nj.random.key(0)
...     one, two = nj.random.normal(key), nj.random.normal(key)
Traceback (most recent call last):
    ...
KeyReuseError: Previously-consumed key passed to random_bits at index 0
"""
