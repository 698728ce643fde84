"""The widgets that several pages share."""
