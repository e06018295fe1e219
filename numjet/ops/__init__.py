"""Every primitive, a family to a file. Imports core and transforms; knows no backend."""
