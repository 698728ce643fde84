"""The frame of every page: navigation, scope bar, work in view, finder, server."""
