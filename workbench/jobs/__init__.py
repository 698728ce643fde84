"""The worker, and a runner for each kind of job."""
