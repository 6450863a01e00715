"""The committers of the papers, each as its paper has it, holes included. `two_phase` is not here.

They know no decision log: what a job commit finds by listing is what counts, and ``_SUCCESS`` says that it ended.
"""
