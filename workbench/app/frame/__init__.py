"""The script that Streamlit runs, in a folder of its own: Streamlit serves every script beside it as a page."""
