"""The verbs of the workbench, which every face calls."""
