"""Functions written as machine code at once, without IR: products, packing, segments, glue."""
