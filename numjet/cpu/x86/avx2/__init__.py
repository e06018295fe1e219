"""What is selected otherwise where vector registers are those of AVX2, beside `select`."""
