"""The script that Streamlit runs, in its own folder because Streamlit serves neighbouring scripts as pages."""
