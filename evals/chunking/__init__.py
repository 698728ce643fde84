"""chunking_evaluation: ways of cutting, compared by quoted spans."""
