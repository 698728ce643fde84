"""The Connect page: this workbench for agents."""
