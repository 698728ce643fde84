"""The System page: health, indexes, sizes and versions."""
