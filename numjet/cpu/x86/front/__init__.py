"""Reading: a module's text or a builder's records as typed instructions."""
