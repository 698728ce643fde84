"""The app: a Streamlit face on the one engine; ``workbench app`` serves it."""
