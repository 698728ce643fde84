"""The app: a Streamlit face on the workbench; ``workbench app`` serves it."""
