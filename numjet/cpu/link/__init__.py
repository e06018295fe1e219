"""From IR text to callable addresses: the processor, LLVM, object cache, loader and jobs."""
