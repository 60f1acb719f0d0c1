"""What a local trial needs and a deployment does not: embedded services, secrets, the demo."""
