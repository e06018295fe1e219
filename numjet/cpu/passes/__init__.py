"""Loop IR to loop IR, a pass to a file; `cpu.pipeline` lists them in order."""
