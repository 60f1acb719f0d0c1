"""What a trial on one's own machine needs and production does not: servers, secrets, a demo."""
