"""Google's Universal Sentence Encoder, multilingual: a small model that was trained on translations."""
