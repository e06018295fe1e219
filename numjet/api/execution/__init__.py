"""Running jaxprs on concrete arrays: dispatch, several processes, checks on the way."""
