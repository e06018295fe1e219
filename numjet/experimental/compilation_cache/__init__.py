"""numjet.experimental.compilation_cache: where compiled programs are kept on disk."""
from numjet.experimental.compilation_cache import compilation_cache as compilation_cache
