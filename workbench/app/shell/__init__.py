"""The frame of every page: navigation, scope bar, tray, finder, server."""
