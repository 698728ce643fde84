"""The results of an experiment as the Evaluate page shows them."""
