"""The API of this app. Views read the request, ask one service or selector, and show the result."""
