"""What Streamlit is pointed at. Apart from ``pages/``, which it would otherwise serve as scripts of their own."""
