"""The why panel: a passage's rank taken apart."""
