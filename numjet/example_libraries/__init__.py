"""numjet.example_libraries: small libraries to learn from, `stax` (layers) and
`optimizers`."""
