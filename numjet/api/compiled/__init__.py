"""`jit`: signatures, their calls as straight code, and the stages of compiling."""
