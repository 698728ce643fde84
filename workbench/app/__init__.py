"""The Streamlit app, served by ``workbench app``."""
