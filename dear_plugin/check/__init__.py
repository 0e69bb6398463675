"""What `diagnose` measures: how well what follows an action agrees with held-out rows."""
