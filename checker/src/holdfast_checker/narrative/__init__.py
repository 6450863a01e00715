"""Tell a counterexample: as numbered sentences, or as a page to step through."""
