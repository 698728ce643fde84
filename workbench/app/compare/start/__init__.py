"""The start of Compare: sample questions, and the sample as a job."""
